"""Evidence of a regression: operation, model, kernel, documentation."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from conformance.report.compare.kinds import without_run_specifics
from conformance.results.case_result import CaseResult, Mismatch
from host.text import counted, one_line

# Lines of a text that are shown; results.json has all.
_MOST = 8
_LONGEST = 240
# "11. p1: pwrite(fd4, (void *)0x200010000000, 4, 4); = -1 EINVAL" without the kernel's answer.
_STEP = re.compile(r"\d+\. (?P<actor>\S+): (?P<call>.*?);? = [^=]*", re.DOTALL)
_CALL = re.compile(r"\w+(?=\()")


Evidence = tuple[tuple[str, tuple[str, ...]], ...]
"""Label and lines of each part, in order; no part is empty."""


def evidence_of(result: CaseResult, base: CaseResult | None = None) -> Evidence:
    """The evidence of a deviating result: its first difference, and the number of others.

    Differences that ``base`` has as well come last.
    """
    found = _new_first(result, base)
    return tuple((name, tuple(lines)) for name, lines in _parts(result, found) if any(lines))


def symptom(result: CaseResult, base: CaseResult | None = None) -> tuple[str, ...]:
    """A key that is equal for cases that seem to fail for the same reason."""
    if not result.mismatches:
        return result.outcome, without_run_specifics(result.reason)
    first = _new_first(result, base)[0]
    call = _CALL.search(_operation(result, first))
    texts = (first.field.partition(" ")[0], first.allowed, first.observed)
    return result.outcome, call[0] if call else "", *map(without_run_specifics, texts)


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
        yield "reason", [cut(result.reason)]
        yield "step", [cut(result.evidence.steps[-1])] if result.evidence.steps else []
        yield "docs", [cut(result.evidence.reference)]
        return
    first = found[0]
    operation = _operation(result, first)
    if first.step:
        yield f"step {first.step}", [cut(operation)]
    if "\n" in first.allowed.strip() or "\n" in first.observed.strip():
        yield first.field, ["- model, + kernel", *_difference(first)]
    else:
        yield "model", [f"{cut(first.field)}: {cut(first.allowed)}"]
        yield "kernel", [f"{cut(first.field)}: {cut(first.observed)}"]
    yield "docs", [cut(result.evidence.reference)]
    rest = len(found) - 1
    yield "more", [f"{counted(rest, 'more difference')} in this case"] if rest else []


def _operation(result: CaseResult, mismatch: Mismatch) -> str:
    """The operation at the step of a mismatch, without its answer."""
    steps = result.evidence.steps
    if not 0 < mismatch.step <= len(steps):
        return ""
    text = steps[mismatch.step - 1]
    found = _STEP.fullmatch(text)
    return f"{found['actor']}: {found['call']}" if found else text


def _difference(mismatch: Mismatch) -> list[str]:
    changes = difflib.unified_diff(
        mismatch.allowed.splitlines(), mismatch.observed.splitlines(), n=0, lineterm=""
    )
    # The first two lines of a unified diff are file names.
    lines = [cut(line) for line in list(changes)[2:] if not line.startswith("@@")]
    if len(lines) > _MOST:
        return [*lines[:_MOST], f"[{len(lines) - _MOST} lines left out]"]
    return lines


def cut(text: str) -> str:
    """A text on one printable line, shortened."""
    text = one_line(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
