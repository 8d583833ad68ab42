"""Classify how the results of one case differ between two runs."""

from __future__ import annotations

import re
from enum import StrEnum

from conformance.results.case_result import (
    CONFORMING,
    NO_VERDICT,
    CaseResult,
    Mismatch,
    Outcome,
)


class Kind(StrEnum):
    """How a case differs between two runs, in order of importance."""

    BROKEN = "broken"  # wrong, was not
    WORSE = "worse"  # was wrong, now crashes or hangs its guest
    REWRITTEN = "rewritten"  # wrong, was not, but the suite changed its program
    UNEXPLAINED = "unexplained"  # deviates as before, but no longer expected
    CHANGED = "changed"  # wrong in both, differently
    REWORDED = "reworded"  # wrong in both, at the same step with another text
    STILL = "still"  # wrong in both, equally
    UNDECIDED = "undecided"  # was judged, now has no verdict
    EXPLAINED = "explained"  # was wrong, now a known deviation
    FIXED = "fixed"  # was wrong or deviating, now conforming
    APPEARED = "appeared"  # only in NEW
    VANISHED = "vanished"  # only in BASE
    OTHERWISE = "otherwise"  # conforming or expected in both; outcome or switches differ


REGRESSIONS = frozenset({Kind.BROKEN, Kind.WORSE})
_WRONG = frozenset({Outcome.FAIL, Outcome.TIMEOUT, Outcome.CRASH})
_GUEST_LOST = frozenset({Outcome.TIMEOUT, Outcome.CRASH})
# Event names, console timestamps and addresses, which differ from run to run.
_VARYING = re.compile(r"\b[tT]\d+_|0x[0-9a-f]+|\[ *\d+\.\d+\]")
# Fields that hold free text; the others hold numbers and errno names.
_TEXTS = frozenset({"data", "console", "literal"})


def kind_of(base: CaseResult | None, new: CaseResult | None, *, rewritten: bool) -> Kind | None:
    """How a case differs, None if it does not.

    ``rewritten`` means that the suite changed its program.
    """
    if base is None:
        return Kind.APPEARED
    if new is None:
        return Kind.VANISHED
    was, now = base.outcome, new.outcome
    if now in _WRONG:
        if was in _WRONG:
            return _wrong_in_both(base, new)
        if was is Outcome.XFAIL and now is Outcome.FAIL and _same_deviation(base, new):
            return Kind.UNEXPLAINED
        return Kind.REWRITTEN if rewritten else Kind.BROKEN
    if now in NO_VERDICT:
        if was in NO_VERDICT:
            return Kind.OTHERWISE if (was, base.reason) != (now, new.reason) else None
        return Kind.UNDECIDED
    if was in _WRONG:
        return Kind.EXPLAINED if now is Outcome.XFAIL else Kind.FIXED
    if was is Outcome.XFAIL and now in CONFORMING:
        return Kind.FIXED
    return Kind.OTHERWISE if (was, base.adapted) != (now, new.adapted) else None


def _wrong_in_both(base: CaseResult, new: CaseResult) -> Kind:
    if new.outcome in _GUEST_LOST and base.outcome not in _GUEST_LOST:
        return Kind.WORSE
    if (base.outcome, base.blame) != (new.outcome, new.blame):
        return Kind.CHANGED
    if not base.mismatches and not new.mismatches:
        return (
            Kind.STILL
            if without_run_specifics(base.reason) == without_run_specifics(new.reason)
            else Kind.REWORDED
        )
    if _same_deviation(base, new):
        return Kind.STILL
    return Kind.REWORDED if _places(base) == _places(new) else Kind.CHANGED


def _same_deviation(base: CaseResult, new: CaseResult) -> bool:
    return _places(base) == _places(new) and _texts(base) == _texts(new)


def _places(result: CaseResult) -> list[tuple[object, ...]]:
    """Steps and fields that deviate, with numbers and errno names, without texts."""
    return [
        (each.step, *(() if _is_text(each) else _text_of(each)), without_run_specifics(each.field))
        for each in result.mismatches
    ]


def _texts(result: CaseResult) -> list[tuple[str, str]]:
    return [_text_of(each) for each in result.mismatches]


def _text_of(mismatch: Mismatch) -> tuple[str, str]:
    return without_run_specifics(mismatch.allowed), without_run_specifics(mismatch.observed)


def _is_text(mismatch: Mismatch) -> bool:
    return mismatch.field.partition(" ")[0] in _TEXTS


def without_run_specifics(text: str) -> str:
    """A text without the parts that differ from run to run."""
    return _VARYING.sub("*", text)
