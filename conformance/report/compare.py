"""What changed from one run to another: cases by what they say of the kernel, not by words.

The cases of BASE and NEW are paired by id.  What a case says of its kernel is one of four things:
right (PASS, XPASS), deviating as somebody has explained (XFAIL), wrong (FAIL, TIMEOUT, CRASH), or
nothing (SKIP, ERROR).  A regression is what BASE does not show to be wrong and NEW does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from conformance.outcome import CaseResult, Contradiction, Outcome, RunVerdict, encode
from conformance.report.record import RunRecord

SCHEMA = 1
"""Version of the JSON written here."""


class Kind(StrEnum):
    """How a case differs between two runs, in the order of telling."""

    BROKEN = "broken"  # wrong now, and was not
    WORSE = "worse"  # wrong before, and now takes its guest with it
    CHANGED = "changed"  # wrong in both, in another way
    UNDECIDED = "undecided"  # judged before, and now neither right nor wrong
    FIXED = "fixed"  # wrong or deviating before, and now right
    APPEARED = "appeared"  # only in NEW
    VANISHED = "vanished"  # only in BASE
    OTHERWISE = "otherwise"  # right or explained in both, with another outcome or switches


REGRESSIONS = frozenset({Kind.BROKEN, Kind.WORSE})
_RIGHT = frozenset({Outcome.PASS, Outcome.XPASS})
_WRONG = frozenset({Outcome.FAIL, Outcome.TIMEOUT, Outcome.CRASH})
_UNJUDGED = frozenset({Outcome.SKIP, Outcome.ERROR})
# Names that a run gives its events, and addresses.
_VARYING = re.compile(r"\bt\d+_|0x[0-9a-f]+")
_GUEST_LOST = frozenset({Outcome.TIMEOUT, Outcome.CRASH})


@dataclass(frozen=True, slots=True)
class Change:
    """One case that differs; ``base`` or ``new`` is None where its run has no result for it."""

    kind: Kind
    base: CaseResult | None
    new: CaseResult | None

    @property
    def id(self) -> str:
        """The case's id."""
        return self.told.id

    @property
    def told(self) -> CaseResult:
        """The result that says what is different: NEW's, if there is one."""
        result = self.new or self.base
        assert result is not None
        return result

    def to_json(self) -> dict[str, Any]:
        """For programs: what differs, and the whole of neither result."""
        return {
            "case": self.id,
            "kind": self.kind.value,
            "regression": self.kind in REGRESSIONS,
            "base": None if self.base is None else _brief(self.base),
            "new": None if self.new is None else _brief(self.new),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that differs between two runs; ``same`` counts the cases that do not.

    ``contradicted`` are dated switches that only NEW contradicts, ``kept`` those that only BASE
    did.  ``unbuilt`` says that NEW has no user_events and BASE has.
    """

    base: RunRecord
    new: RunRecord
    changes: tuple[Change, ...]
    same: int
    contradicted: tuple[Contradiction, ...] = ()
    kept: tuple[Contradiction, ...] = ()
    unbuilt: bool = False

    @property
    def regression(self) -> bool:
        """Whether anything got worse."""
        return (
            self.unbuilt
            or bool(self.contradicted)
            or any(change.kind in REGRESSIONS for change in self.changes)
        )

    @property
    def decided(self) -> bool:
        """Whether both runs gave a verdict."""
        return RunVerdict.ERROR not in (self.base.verdict, self.new.verdict)

    @property
    def different(self) -> bool:
        """Whether anything differs at all."""
        return bool(self.changes or self.contradicted or self.kept or self.unbuilt)

    def of(self, kind: Kind) -> tuple[Change, ...]:
        """The changes of one kind, by case id."""
        return tuple(change for change in self.changes if change.kind is kind)

    def to_json(self) -> dict[str, Any]:
        """The comparison for programs."""
        return {
            "schema": SCHEMA,
            "base": _head(self.base),
            "new": _head(self.new),
            "regression": self.regression,
            "not_built": self.unbuilt,
            "contradicted": encode(self.contradicted),
            "no_longer_contradicted": encode(self.kept),
            "changes": [change.to_json() for change in self.changes],
            "same": self.same,
        }


def compare(base: RunRecord, new: RunRecord) -> Comparison:
    """What is different in ``new``."""
    before = {case.id: case for case in base.cases}
    after = {case.id: case for case in new.cases}
    unbuilt = new.not_built and not base.not_built
    changes = []
    if not new.not_built and not base.not_built:
        changes = list(_changes(before, after))
    order = list(Kind)
    changes.sort(key=lambda change: (order.index(change.kind), change.id))
    ours = {each.switch for each in base.contradictions}
    theirs = {each.switch for each in new.contradictions}
    return Comparison(
        base,
        new,
        tuple(changes),
        same=len(before.keys() | after.keys()) - len(changes) if not unbuilt else 0,
        contradicted=tuple(each for each in new.contradictions if each.switch not in ours),
        kept=tuple(each for each in base.contradictions if each.switch not in theirs),
        unbuilt=unbuilt,
    )


def _changes(before: dict[str, CaseResult], after: dict[str, CaseResult]) -> Iterable[Change]:
    for case in before.keys() | after.keys():
        base, new = before.get(case), after.get(case)
        kind = _kind(base, new)
        if kind is not None:
            yield Change(kind, base, new)


def _kind(base: CaseResult | None, new: CaseResult | None) -> Kind | None:
    """How a case differs, None if it does not."""
    if base is None:
        return Kind.APPEARED
    if new is None:
        return Kind.VANISHED
    was, now = base.outcome, new.outcome
    if now in _WRONG:
        if was not in _WRONG:
            return Kind.BROKEN
        if now in _GUEST_LOST and was not in _GUEST_LOST:
            return Kind.WORSE
        return Kind.CHANGED if _shown(base) != _shown(new) else None
    if now in _UNJUDGED:
        if was in _UNJUDGED:
            return Kind.OTHERWISE if (was, base.reason) != (now, new.reason) else None
        return Kind.UNDECIDED
    if was in _WRONG or (was is Outcome.XFAIL and now in _RIGHT):
        return Kind.FIXED
    return Kind.OTHERWISE if (was, base.adapted) != (now, new.adapted) else None


def _shown(result: CaseResult) -> tuple[object, ...]:
    """What a wrong case showed, without what is another in every run."""
    found = tuple(
        (
            each.step,
            *(_VARYING.sub("*", text) for text in (each.field, each.allowed, each.observed)),
        )
        for each in result.mismatches
    )
    return result.outcome, result.blame, found or result.reason


def _brief(result: CaseResult) -> dict[str, Any]:
    return {
        "outcome": result.outcome.value,
        "blame": result.blame.value,
        "reason": result.reason,
        "mismatches": encode(result.mismatches),
        "adapted": list(result.adapted),
        "rerun": encode(result.rerun),
    }


def _head(record: RunRecord) -> dict[str, Any]:
    return {
        **encode(record.head),
        "verdict": record.verdict.value,
        "selected": record.selected,
        "missing": record.missing,
    }
