"""Evidence of a regression: operation, model, kernel, documentation."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from conformance.report.causes import symptom, without_run_specifics
from conformance.report.difference import SIDES, is_text
from conformance.report.program import line_at
from conformance.results.case_result import CaseResult, Mismatch
from host.text import counted, cut, first, one_line

# Lines of a text that are shown; results.json has all.
_MOST = 8
_LONGEST = 240


Evidence = tuple[tuple[str, tuple[str, ...]], ...]
"""Label and lines of each part, in order; no part is empty."""


def evidence_of(result: CaseResult, base: CaseResult | None) -> Evidence:
    """The evidence of a deviating result: its first difference, and the number of others.

    Differences that ``base`` has as well come last.
    """
    found = _new_first(result, base)
    return tuple((name, tuple(lines)) for name, lines in _parts(result, found) if any(lines))


def symptom_of(result: CaseResult, base: CaseResult | None) -> tuple[object, ...]:
    """The symptom by the first difference that ``base`` does not have."""
    return symptom(result, next(iter(_new_first(result, base)), None))


def _new_first(result: CaseResult, base: CaseResult | None) -> list[Mismatch]:
    """The differences of a result, those that its base does not have first."""
    known = {_key(each) for each in base.mismatches} if base else set()
    return sorted(result.mismatches, key=lambda each: _key(each) in known)


def _key(mismatch: Mismatch) -> tuple[object, ...]:
    return mismatch.step, *map(
        without_run_specifics, (mismatch.field, mismatch.allowed, mismatch.observed)
    )


def _parts(result: CaseResult, found: Sequence[Mismatch]) -> Iterable[tuple[str, list[str]]]:
    if not found:
        yield "reason", [brief(result.reason)]
        yield "step", [brief(step) for step in result.evidence.steps[-1:]]
        yield "docs", [brief(result.evidence.reference)]
        return
    shown = found[0]
    if shown.step:
        line = line_at(result, shown.step)
        yield f"step {shown.step}", [brief(line.partition(". ")[2] or line)]
    if is_text(shown):
        yield shown.field, [f"- {SIDES[0]}, + {SIDES[1]}", *_difference(shown)]
    else:
        for side, text in zip(SIDES, (shown.allowed, shown.observed), strict=True):
            yield side, [f"{brief(shown.field)}: {brief(text)}"]
    yield "docs", [brief(result.evidence.reference)]
    rest = len(found) - 1
    yield "more", [f"{counted(rest, 'more difference')} in this case"] if rest else []


def _difference(mismatch: Mismatch) -> list[str]:
    changes = difflib.unified_diff(
        mismatch.allowed.splitlines(), mismatch.observed.splitlines(), n=0, lineterm=""
    )
    # The first two lines of a unified diff are file names.
    lines = [brief(line) for line in list(changes)[2:] if not line.startswith("@@")]
    return first(lines, _MOST, "[{} lines left out]")


def brief(text: str) -> str:
    """A text on one printable line, shortened."""
    return cut(one_line(text), _LONGEST)
