"""Dated switches of the ABI that a kernel contradicts."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from conformance.results.outcome import Outcome


class Contradiction(Struct, frozen=True):
    """A dated switch that the kernel contradicts.

    ``measured`` is whether the kernel behaves as the switch ``says``; its profile has the opposite.
    ``commit`` is the title of the commit that dates the switch, ``case`` the id of its case,
    ``outcome`` what the contradiction amounts to.  The switch of a ``bug`` is on where the bug is
    fixed.
    """

    switch: str
    measured: bool
    says: str
    commit: str
    case: str
    outcome: Outcome = Outcome.FAIL
    bug: bool = False

    @property
    def states(self) -> tuple[str, str]:
        """The state of the switch in this kernel, and in its profile."""
        here, dated = ("fixed", "present") if self.bug else ("on", "off")
        return (here, dated) if self.measured else (dated, here)

    @property
    def override(self) -> str:
        """The switch as measured, for ``--abi``."""
        words = ("present", "fixed") if self.bug else ("no", "yes")
        return f"{self.switch}={words[self.measured]}"


def abi_with(profile: str, contradictions: Iterable[Contradiction]) -> str:
    """The ``--abi`` that agrees with the kernel in all of these."""
    found = {each.switch: each.override for each in contradictions}
    name, *overrides = [part.strip() for part in profile.split(",")]
    kept = [text for text in overrides if text.partition("=")[0] not in found]
    return ",".join([name, *kept, *found.values()])
