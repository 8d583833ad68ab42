"""Flaky cases: runs of one kernel with the same program disagree."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from conformance.results.outcome import Outcome
from conformance.results.stored_outcomes import CaseOutcome

# A known bug is a deviation all the same.
_CLASSES = {
    Outcome.PASS: "right",
    Outcome.FIXED: "right",
    Outcome.FAIL: "wrong",
    Outcome.CHANGED: "wrong",
    Outcome.NOTE: "wrong",
    Outcome.XFAIL: "wrong",
    Outcome.TIMEOUT: "hangs",
    Outcome.CRASH: "crashes",
}


class Tally(Struct, frozen=True):
    """The outcomes of one case on one kernel, counted; SKIP and ERROR do not count."""

    outcomes: Mapping[Outcome, int]

    @classmethod
    def of(cls, outcomes: Iterable[CaseOutcome]) -> Tally:
        """Count the outcomes of the same program as the first."""
        counted: Counter[Outcome] = Counter()
        first: CaseOutcome | None = None
        for each in outcomes:
            first = first or each
            if each.outcome in _CLASSES and not each.program.changed(first.program):
                counted[each.outcome] += 1
        return cls(counted)

    @property
    def runs(self) -> int:
        """The number of runs with a verdict."""
        return sum(self.outcomes.values())

    @property
    def disagree(self) -> bool:
        """Whether the runs disagree."""
        return len({_CLASSES[outcome] for outcome in self.outcomes}) > 1

    @property
    def crashed(self) -> bool:
        """Whether the case crashed a guest at least once."""
        return Outcome.CRASH in self.outcomes

    def to_json(self) -> dict[str, int]:
        """The counts by outcome."""
        return {outcome.value: number for outcome, number in self.outcomes.items()}

    def __str__(self) -> str:
        if not self.outcomes:
            return "not judged"
        ordered = sorted(self.outcomes.items(), key=lambda item: list(Outcome).index(item[0]))
        parts = [f"{outcome} in {number}" for outcome, number in ordered]
        return f"{', '.join(parts)} of {self.runs}"


class Flaky(Struct, frozen=True):
    """A case whose outcome differs among runs of one kernel.

    ``one_kernel``: base and new are the same kernel.
    """

    id: str
    base: Tally
    new: Tally
    one_kernel: bool

    @property
    def regression(self) -> bool:
        """Whether only NEW crashes: an occasional panic is as bad as a certain one."""
        return self.new.crashed and not self.base.crashed and not self.one_kernel


def flaky_cases(
    base: Iterable[Mapping[str, CaseOutcome]],
    new: Iterable[Mapping[str, CaseOutcome]],
    *,
    one_kernel: bool,
) -> tuple[Flaky, ...]:
    """The flaky cases, regressions first.

    With ``one_kernel`` both sides are runs of the same kernel.
    """
    sides = [list(base), list(new)]
    found = []
    for case in sorted({case for side in sides for run in side for case in run}):
        outcomes = [[run[case] for run in side if case in run] for side in sides]
        before, after = map(Tally.of, outcomes)
        together = [Tally.of(itertools.chain(*outcomes))] if one_kernel else [before, after]
        if any(tally.disagree for tally in together):
            found.append(Flaky(case, before, after, one_kernel))
    return tuple(sorted(found, key=lambda each: not each.regression))
