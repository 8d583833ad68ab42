"""Compare two runs: cases by what their outcomes say about the kernel.

Cases of BASE and NEW are paired by id.  An outcome is conforming (PASS, FIXED), a known bug
(XFAIL), wrong (FAIL, CHANGED, NOTE, TIMEOUT, CRASH), or no verdict (SKIP, ERROR).  A regression is
worse in NEW than in BASE, at a level that fails a run, with the same program, and not flaky.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from conformance.report.compare.kinds import REGRESSIONS, Kind, kind_of, weight
from conformance.report.history.flaky import Flaky, flaky_cases
from conformance.results.case_result import CaseResult
from conformance.results.contradiction import Contradiction
from conformance.results.outcome import OUTCOME_OF, Level, Outcome, RunVerdict, failing
from conformance.results.run import KernelFacts, RunRecord, same_kernel
from conformance.results.stored_outcomes import CaseOutcome, RunOutcomes

SCHEMA = 1
"""Version of the --json document."""

Options = Mapping[str, tuple[str, str]]
"""How configurations differ: option to its value before and now, "n" where it is off."""


class Change(Struct, frozen=True):
    """One case that differs; ``base`` or ``new`` is None if its run has no result.

    ``program_changed`` is None if unknown.
    """

    kind: Kind
    base: CaseResult | None
    new: CaseResult | None
    program_changed: bool | None = False

    @property
    def id(self) -> str:
        """The id of the case."""
        return self.result.id

    @property
    def result(self) -> CaseResult:
        """The result to describe: that of NEW, if there is one."""
        result = self.new or self.base
        assert result is not None
        return result

    @property
    def weight(self) -> Level:
        """The level at which the result counts."""
        return weight(self.result)

    def regression(self, fail_on: Level) -> bool:
        """Whether it is worse at this level or a stronger one."""
        return self.kind in REGRESSIONS and OUTCOME_OF[self.weight] in failing(fail_on)

    def to_json(self, fail_on: Level) -> dict[str, Any]:
        """The difference as JSON, without the evidence."""
        return {
            "case": self.id,
            "kind": self.kind.value,
            "level": self.weight.value,
            "regression": self.regression(fail_on),
            "program_changed": self.program_changed,
            "base": None if self.base is None else _extract(self.base),
            "new": None if self.new is None else _extract(self.new),
        }


class Comparison(Struct, frozen=True):
    """The differences between two runs; ``same`` counts the cases without any.

    What is worse at level ``fail_on`` or a stronger one is a regression.
    ``still_failing`` are the cases that fail equally in both; ``flaky`` those on which runs of one
    kernel disagree (they are in no other list).  ``programs_changed`` counts cases with different
    programs.  ``options`` is None if a configuration is unknown.
    """

    base: RunRecord
    new: RunRecord
    changes: tuple[Change, ...]
    same: int
    still_failing: tuple[Change, ...] = ()
    flaky: tuple[Flaky, ...] = ()
    programs_changed: int = 0
    newly_contradicted: tuple[Contradiction, ...] = ()
    no_longer_contradicted: tuple[Contradiction, ...] = ()
    runs: tuple[int, int] = (1, 1)
    options: Options | None = None
    fail_on: Level = Level.CONTRACT

    @property
    def lost_user_events(self) -> bool:
        """Whether only NEW was built without user_events."""
        return self.new.not_built and not self.base.not_built

    @property
    def gained_user_events(self) -> bool:
        """Whether only BASE was built without user_events."""
        return self.base.not_built and not self.new.not_built

    @property
    def regression(self) -> bool:
        """Whether NEW is worse."""
        return (
            self.lost_user_events
            or any(each.outcome in failing(self.fail_on) for each in self.newly_contradicted)
            or any(change.regression(self.fail_on) for change in self.changes)
            or any(each.regression for each in self.flaky)
        )

    @property
    def decided(self) -> bool:
        """Whether both runs judged all their cases."""
        return not self.gained_user_events and not any(
            each.verdict is RunVerdict.ERROR or each.missing or each.count(Outcome.ERROR)
            for each in (self.base, self.new)
        )

    @property
    def different(self) -> bool:
        """Whether anything differs at all."""
        contradictions = self.newly_contradicted or self.no_longer_contradicted
        built = self.base.not_built is self.new.not_built
        return bool(self.changes or self.flaky or contradictions or not built)

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """The changes of one kind, sorted by case id."""
        found = self.still_failing if kind is Kind.STILL else self.changes
        return tuple(change for change in found if change.kind is kind)

    def to_json(self) -> dict[str, Any]:
        """The document of --json."""
        sides = zip((self.base, self.new), self.runs, strict=True)
        base, new = ({**_head(each), "runs": number} for each, number in sides)
        return {
            "schema": SCHEMA,
            "base": base,
            "new": new,
            "fail_on": self.fail_on.value,
            "regression": self.regression,
            "decided": self.decided,
            "not_built": self.lost_user_events,
            "base_not_built": self.gained_user_events,
            "config": None if self.options is None else dict(self.options),
            "contradicted": to_builtins(self.newly_contradicted),
            "no_longer_contradicted": to_builtins(self.no_longer_contradicted),
            "flaky": [_flaky(each) for each in self.flaky],
            "changes": [change.to_json(self.fail_on) for change in self.changes],
            "still_failing": [change.to_json(self.fail_on) for change in self.still_failing],
            "same": self.same,
            "programs_changed": self.programs_changed,
        }


def compare(
    base: RunRecord,
    new: RunRecord,
    more_base: Sequence[RunOutcomes] = (),
    more_new: Sequence[RunOutcomes] = (),
    options: Options | None = None,
    fail_on: Level = Level.CONTRACT,
) -> Comparison:
    """The differences; further runs of the same two kernels show which cases are flaky."""
    before = {case.id: case for case in base.cases}
    after = {case.id: case for case in new.cases}
    both = before.keys() & after.keys()
    in_base = {each.switch for each in base.contradicted}
    in_new = {each.switch for each in new.contradicted}
    judged = not new.not_built and not base.not_built
    flaky = flaky_cases(
        [_outcomes(before), *(each.cases for each in more_base)],
        [_outcomes(after), *(each.cases for each in more_new)],
        one_kernel=is_one_kernel(base.head.kernel, new.head.kernel),
    )
    steady = (before.keys() | after.keys()) - {each.id for each in flaky}
    found = list(_changes(before, after, steady if judged else (), _suite_differs(base, new)))
    changes = [change for change in found if change.kind is not Kind.STILL]
    return Comparison(
        base,
        new,
        _ordered(changes),
        same=len(steady) - len(changes) if base.not_built is new.not_built else 0,
        still_failing=_ordered(change for change in found if change.kind is Kind.STILL),
        flaky=flaky if judged else (),
        programs_changed=sum(_program_changed(before[id], after[id]) is True for id in both),
        newly_contradicted=tuple(e for e in new.contradicted if e.switch not in in_base),
        no_longer_contradicted=tuple(e for e in base.contradicted if e.switch not in in_new),
        runs=(1 + len(more_base), 1 + len(more_new)),
        options=options,
        fail_on=fail_on,
    )


def is_one_kernel(base: KernelFacts, new: KernelFacts) -> bool:
    """Whether both runs are known to be of one build, judged by the same ABI."""
    return base.build is not None and new.build is not None and same_kernel(base, new)


def _ordered(changes: Iterable[Change]) -> tuple[Change, ...]:
    order = list(Kind)
    return tuple(sorted(changes, key=lambda change: (order.index(change.kind), change.id)))


def _changes(
    before: Mapping[str, CaseResult],
    after: Mapping[str, CaseResult],
    cases: Iterable[str],
    suite_differs: bool,
) -> Iterable[Change]:
    for case in cases:
        base, new = before.get(case), after.get(case)
        changed = base and new and suite_differs and _program_changed(base, new)
        judged = any(
            each is not None and each.aftermath_of in other
            for each, other in ((base, after), (new, before))
        )
        kind = kind_of(base, new, rewritten=changed is True, judged=judged)
        if kind is not None:
            unknown = changed is None and base and new and base.digest != new.digest
            yield Change(kind, base, new, None if unknown else changed is True)


def _suite_differs(base: RunRecord, new: RunRecord) -> bool:
    """Whether the suite may have changed programs; with another profile, programs differ anyway."""
    if base.head.kernel.profile != new.head.kernel.profile:
        return False
    unclean = base.head.suite.endswith("-dirty") or base.head.suite == "unknown"
    return unclean or base.head.suite != new.head.suite


def _outcomes(cases: Mapping[str, CaseResult]) -> dict[str, CaseOutcome]:
    return {id: CaseOutcome.of(case) for id, case in cases.items()}


def _program_changed(base: CaseResult, new: CaseResult) -> bool | None:
    return CaseOutcome.of(base).program.changed(CaseOutcome.of(new).program)


def _extract(result: CaseResult) -> dict[str, Any]:
    return {
        "outcome": result.outcome.value,
        "blame": result.blame.value,
        "reason": result.reason,
        "mismatches": to_builtins(result.mismatches),
        "adapted": list(result.adapted),
        "rerun": to_builtins(result.rerun),
        "digest": result.digest,
    }


def _flaky(found: Flaky) -> dict[str, Any]:
    counts = {"base": found.base.to_json(), "new": found.new.to_json()}
    return {"case": found.id, "regression": found.regression, **counts}


def _head(record: RunRecord) -> dict[str, Any]:
    return {
        **to_builtins(record.head),
        "verdict": record.verdict.value,
        "selected": record.selected,
        "missing": record.missing,
    }
