"""Known bugs of the kernel, as dated switches: docs/findings.md describes each under its id.

A kernel with a known bug is not failed for it, and a kernel without it passes: the model and the
cases know both answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.abi.switch import Kind, Switch


def _bug(
    id: str,
    symptom: str,
    *,
    kind: Kind = Kind.USER_EVENTS,
    introduced: tuple[int, int] | None = None,
    fix: str = "",
    fixed: tuple[int, int] | None = None,
    backports: Mapping[tuple[int, int], int] | None = None,
) -> Switch:
    """A bug; ``fix`` is the title of the commit, ``fixed`` the first mainline release with it.

    ``kind`` says whose code has the bug: that of user_events, or that of the booted base.
    """
    return Switch(
        id, symptom, fix, fixed, backports or {}, kind=kind, bug=True, introduced=introduced
    )


BUGS: tuple[Switch, ...] = ()
