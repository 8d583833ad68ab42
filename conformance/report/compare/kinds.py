"""How the results of one case differ between two runs."""

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
    """How a case differs between two runs, in the order of telling."""

    BROKEN = "broken"  # wrong now, and was not
    WORSE = "worse"  # wrong before, and now takes its guest with it
    REWRITTEN = "rewritten"  # wrong now, and was not, but the suite has changed its program
    UNEXPLAINED = "unexplained"  # deviates as before, and no expectation says so any more
    CHANGED = "changed"  # wrong in both, in another way
    REWORDED = "reworded"  # wrong in both, at the same place with another text
    STILL = "still"  # wrong in both, and no different
    UNDECIDED = "undecided"  # judged before, and now neither right nor wrong
    EXPLAINED = "explained"  # wrong before, and now a known deviation
    FIXED = "fixed"  # wrong or deviating before, and now right
    APPEARED = "appeared"  # only in NEW
    VANISHED = "vanished"  # only in BASE
    OTHERWISE = "otherwise"  # right or explained in both, with another outcome or switches


REGRESSIONS = frozenset({Kind.BROKEN, Kind.WORSE})
_WRONG = frozenset({Outcome.FAIL, Outcome.TIMEOUT, Outcome.CRASH})
_GUEST_LOST = frozenset({Outcome.TIMEOUT, Outcome.CRASH})
# Names that a run gives its events, times of the console, and addresses.
_VARYING = re.compile(r"\b[tT]\d+_|0x[0-9a-f]+|\[ *\d+\.\d+\]")
# Parts of an answer that are words: the others are numbers and names of errors.
_TEXTS = frozenset({"data", "console", "literal"})


def kind_of(base: CaseResult | None, new: CaseResult | None, *, rewritten: bool) -> Kind | None:
    """How a case differs, None if it does not.

    ``rewritten`` says that the suite has changed the case's program.
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
    """Where a case deviates, and with which numbers and errors; what is text is left out."""
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
    """A text without what is another in every run."""
    return _VARYING.sub("*", text)
