"""Classify how the results of one case differ between two runs."""

from __future__ import annotations

from enum import StrEnum

from msgspec.structs import replace

from conformance.abi.switches import SWITCHES
from conformance.report.causes import without_run_specifics
from conformance.results.case_result import CaseResult, Mismatch
from conformance.results.outcome import (
    CONFORMING,
    LOST,
    NO_VERDICT,
    OUTCOME_OF,
    UNEXPECTED,
    Level,
    Outcome,
)


class Kind(StrEnum):
    """How a case differs between two runs, in order of importance.

    ``heading`` is that of its section, ``short`` follows its number in the conclusion.
    """

    heading: str
    short: str

    BROKEN = "broken", "newly deviating", "newly deviating"
    # A stronger level, a crash or a hang.
    WORSE = "worse", "deviating, and now worse", "worse"
    BUG = "bug", "with a known bug that the base does not have", "with a known bug that came"
    REWRITTEN = (
        "rewritten",
        "newly deviating, with programs that the suite changed",
        "deviating with changed programs",
    )
    DIFFERENT = "different", "deviating differently", "deviating differently"
    # At the same step.
    REWORDED = "reworded", "deviating as before, with another text", "deviating with another text"
    STILL = "still", "still deviating", ""
    UNDECIDED = "undecided", "no longer judged", "no longer judged"
    EXPLAINED = "explained", "deviating before, now a known bug", "now known"
    # Was deviating or a known bug.
    FIXED = "fixed", "fixed", "fixed"
    APPEARED = "appeared", "only in the new run", "new"
    VANISHED = "vanished", "only in the base run", "gone"
    # Conforming, or a known bug.
    DECIDED = "decided", "judged now, not in the base run", "judged now"
    # Outcome, reason, bug or switches differ.
    OTHERWISE = (
        "otherwise",
        "passing, known or not judged in both, with other differences",
        "with other differences",
    )

    def __new__(cls, value: str, heading: str = "", short: str = "") -> Kind:
        """A kind with its words."""
        kind = str.__new__(cls, value)
        kind._value_, kind.heading, kind.short = value, heading, short
        return kind


REGRESSIONS = frozenset({Kind.BROKEN, Kind.WORSE, Kind.BUG})
"""Kinds that are worse; whether one is a regression depends on its ``weight``."""
_LEVELS = {outcome: level for level, outcome in OUTCOME_OF.items()}
_BY_CHANCE = {each.name for each in SWITCHES if each.by_chance}
# Fields that hold free text; the others hold numbers and errno names.
_TEXTS = frozenset({"data", "console", "literal"})


def kind_of(
    base: CaseResult | None,
    new: CaseResult | None,
    *,
    rewritten: bool,
    judged: bool,
) -> Kind | None:
    """How a case differs, None if it does not.

    ``rewritten`` means that the suite changed its program.  A result about what the kernel kept of
    a case is in one run only; ``judged`` says that the other one judged that case.
    """
    if base is None:
        return Kind.BROKEN if judged and new and new.outcome in UNEXPECTED else Kind.APPEARED
    if new is None:
        return Kind.FIXED if judged and base.outcome in UNEXPECTED else Kind.VANISHED
    base, new = map(_without_chance, (base, new))
    was, now = base.outcome, new.outcome
    if now in UNEXPECTED:
        if was in UNEXPECTED:
            return _wrong_in_both(base, new)
        return Kind.REWRITTEN if rewritten else Kind.BROKEN
    if now in NO_VERDICT:
        if was in NO_VERDICT:
            return Kind.OTHERWISE if (was, base.reason) != (now, new.reason) else None
        return Kind.UNDECIDED
    if was in NO_VERDICT:
        return Kind.DECIDED
    if was in UNEXPECTED:
        return Kind.EXPLAINED if now is Outcome.XFAIL else Kind.FIXED
    if was is Outcome.XFAIL and now in CONFORMING:
        return Kind.FIXED
    if now is Outcome.XFAIL and (was in CONFORMING or set(new.bug.split()) - set(base.bug.split())):
        return Kind.BUG
    differs = (was, base.adapted, base.bug) != (now, new.adapted, new.bug)
    return Kind.OTHERWISE if differs else None


def weight(result: CaseResult) -> Level:
    """The level at which a deviation counts; LOST counts as contract.

    A known bug that came is behaviour at most, like one that came back.
    """
    if result.outcome is Outcome.XFAIL:
        return result.level.at_most(Level.BEHAVIOUR)
    return _LEVELS.get(result.outcome, Level.CONTRACT)


def _without_chance(result: CaseResult) -> CaseResult:
    """PASS for a known bug that shows by chance: it says nothing about two kernels."""
    bugs = set(result.bug.split())
    by_chance = result.outcome is Outcome.XFAIL and bugs and bugs <= _BY_CHANCE
    return replace(result, outcome=Outcome.PASS, bug="") if by_chance else result


def _wrong_in_both(base: CaseResult, new: CaseResult) -> Kind:
    if _gravity(new) > _gravity(base) and not (base.mismatches and _same_deviation(base, new)):
        return Kind.WORSE
    if (base.outcome, base.blame) != (new.outcome, new.blame):
        return Kind.DIFFERENT
    if not base.mismatches and not new.mismatches:
        was, now = map(without_run_specifics, (base.reason, new.reason))
        return Kind.STILL if was == now else Kind.REWORDED
    if _same_deviation(base, new):
        return Kind.STILL
    return Kind.REWORDED if _places(base) == _places(new) else Kind.DIFFERENT


def _gravity(result: CaseResult) -> tuple[bool, int]:
    """Sorts NOTE before CHANGED, FAIL, and what lost the guest."""
    return result.outcome in LOST, -list(Level).index(weight(result))


def _same_deviation(base: CaseResult, new: CaseResult) -> bool:
    return _places(base) == _places(new) and _texts(base) == _texts(new)


def _places(result: CaseResult) -> list[tuple[object, ...]]:
    """Steps and fields that deviate, with numbers and errno names, without texts."""
    return [
        (
            each.step,
            without_run_specifics(each.field),
            *(() if each.field.partition(" ")[0] in _TEXTS else _text_of(each)),
        )
        for each in result.mismatches
    ]


def _texts(result: CaseResult) -> list[tuple[str, str]]:
    return [_text_of(each) for each in result.mismatches]


def _text_of(mismatch: Mismatch) -> tuple[str, str]:
    return without_run_specifics(mismatch.allowed), without_run_specifics(mismatch.observed)
