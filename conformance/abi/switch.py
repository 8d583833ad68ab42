"""A dated switch: a behaviour that user space can see, and the releases that have it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field


class Kind(StrEnum):
    """The code that a switch dates: user_events, or generic tracing code."""

    USER_EVENTS = "user_events"
    BASE = "base"


class Switch(Struct, frozen=True):
    """One dated behaviour.

    ``since`` is the first mainline release as (major, minor), or None if no release has the
    behaviour: it was merged and removed, or only a catalog variant has it.  ``backports`` maps a
    stable series to its first sublevel with it.  ``commit`` is a title.

    A switch of a ``bug`` is on where the kernel does not have the bug: ``since`` is the release
    that fixed it, ``commit`` the fix ("" if there is none), ``says`` the symptom.  A bug with
    ``fingerprints`` is recognised by the kernel report that it causes, others by the answers of
    the kernel.  One that shows ``by_chance`` has no case: the model recognises it in any program.

    Releases before ``introduced``, (major, minor) or a stable release, have the switch on as well,
    and in the stable series of ``introduced_stable`` those before a sublevel.
    """

    name: str
    says: str
    commit: str = ""
    since: tuple[int, int] | None = None
    backports: Mapping[tuple[int, int], int] = field(default_factory=dict)
    kind: Kind = Kind.USER_EVENTS
    bug: bool = False
    introduced: tuple[int, ...] | None = None
    introduced_stable: Mapping[tuple[int, int], int] = field(default_factory=dict)
    fingerprints: tuple[str, ...] = ()
    by_chance: bool = False
