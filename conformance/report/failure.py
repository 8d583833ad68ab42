"""One result that deviates, with everything needed to judge and repeat it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from conformance.results.case_result import (
    DEVIATIONS,
    Blame,
    CaseResult,
    Mismatch,
    Outcome,
    Report,
    Rerun,
    Which,
)
from conformance.results.run import RunHead
from host.text import folded, one_line, printable, wrapped

# Enough for any ordinary case; results.json has all lines of a storm.
_FIRST_LINES = 12
_LAST_LINES = 36
# Column of the text after labels such as "case" and "decided by".
_COLUMN = 12
# Documentation/trace/user_events.rst@v6.12: a file of the kernel's tree at a tag.
_FILE_AT_TAG = re.compile(r"(?P<file>[\w.-]+(/[\w.-]+)+)@(?P<tag>v\d+\.\d+[\w.-]*): ")


def render_failure(result: CaseResult, head: RunHead | None = None) -> list[str]:
    """The result as lines of at most 100 columns; the first is the heading.

    With ``head``, that of its run, the last line is the command that runs the case again.  It is
    a single line of any length, to be copied.  Empty parts are left out.
    """
    lines = wrapped(_heading(result), hanging=4)
    lines += _paragraph(result.sentence)
    if result.reason not in map(str, result.mismatches):
        lines += _paragraph(result.reason)
    lines += _steps(result)
    lines += _block("the kernel reported", [line for r in result.reports for line in _report(r)])
    lines += _block("console", folded(_elided(_content(result.evidence.console)), indent=4))
    if result.adapted:
        lines += _paragraph(adapted_line(result))
    if result.rerun:
        lines += _paragraph(rerun_line(result.rerun))
    lines += _references(result)
    if head is not None and (command := head.command_for(result)):
        lines.append(f"  rerun: {one_line(command)}")
    return lines


def remark(result: CaseResult) -> str:
    """One line about a fixed bug or a deviation, for a case that fails no run; else ""."""
    if result.outcome in DEVIATIONS:
        return one_line(f"{result.outcome} ({result.level.words}): {result.difference}")
    return one_line(f"FIXED: {result.reason}") if result.outcome is Outcome.FIXED else ""


def adapted_line(result: CaseResult) -> str:
    """One line about the switches that were measured and differ from the profile."""
    return f"judged with measured switches: {', '.join(result.adapted)}"


def rerun_line(rerun: Rerun) -> str:
    """One line about the other run of a case that ran twice."""
    blame = f", blame {rerun.blame}" if rerun.blame is not Blame.NONE else ""
    ended = f"{rerun.outcome}{blame}" + (f": {one_line(rerun.reason)}" if rerun.reason else "")
    if rerun.of is Which.FIRST:
        return f"this is the result of a second run; the first gave no verdict ({ended})"
    return f"the first result stands; a second run on a new guest gave {ended}"


def documentation_link(docs: str) -> str:
    """A web page for documentation given as ``file@tag: text``, "" for any other form."""
    found = _FILE_AT_TAG.match(docs)
    if found is None:
        return ""
    return f"https://elixir.bootlin.com/linux/{found['tag']}/source/{found['file']}"


def _heading(result: CaseResult) -> str:
    facts = [result.level.words] if result.outcome in DEVIATIONS else []
    facts += [f"blame {result.blame}"] if result.blame is not Blame.NONE else []
    return f"{result.outcome} {result.id} ({', '.join([*facts, f'{result.duration_s:.2f} s'])})"


def _paragraph(text: str) -> list[str]:
    return wrapped(one_line(text), indent=2, hanging=2) if text.strip() else []


def _block(title: str, lines: Sequence[str]) -> list[str]:
    return [f"  {title}", *lines] if lines else []


def _steps(result: CaseResult) -> list[str]:
    """The operations, each followed by what differs; then the other differences."""
    steps, wrong = result.evidence.steps, {each.step for each in result.mismatches}
    lines = ["  steps"] if steps else []
    left_out = 0
    for number, step in enumerate(steps, 1):
        if _FIRST_LINES < number <= len(steps) - _LAST_LINES and number not in wrong:
            left_out += 1
            continue
        lines += _left_out(left_out)
        left_out = 0
        lines += wrapped(one_line(step), indent=4, hanging=4)
        for mismatch in result.mismatches:
            lines += _difference(mismatch) if mismatch.step == number else []
    for mismatch in result.mismatches:
        if not 0 < mismatch.step <= len(steps):
            lines += [f"  step {mismatch.step}" if mismatch.step else "  the case as a whole"]
            lines += _difference(mismatch)
    return lines


def _left_out(number: int) -> list[str]:
    return [f"    [{number} steps left out; results.json has them]"] if number else []


def _difference(mismatch: Mismatch) -> list[str]:
    sides = ("model ", "kernel") if mismatch.step else ("allowed ", "observed")
    field = one_line(mismatch.field)
    if "\n" not in mismatch.allowed.strip() and "\n" not in mismatch.observed.strip():
        lines: list[str] = []
        for label, answer in zip(sides, (mismatch.allowed, mismatch.observed), strict=True):
            # Not one_line(): the difference may be white space.
            text = printable(answer.strip("\n"))
            text = text if field == "errno" else f"{field} {text}"
            lines += wrapped(f"{label}  {text}", indent=6, hanging=8)
        return lines
    changes = difflib.unified_diff(
        mismatch.allowed.splitlines(), mismatch.observed.splitlines(), n=1, lineterm=""
    )
    legend = f"{field} (- {sides[0].strip()}, + {sides[1]})"
    # The first two lines of a unified diff are file names.
    return [*wrapped(legend, indent=6), *folded(_elided(list(changes)[2:]), indent=6)]


def _report(report: Report) -> Iterator[str]:
    yield from wrapped(one_line(str(report)), indent=4, hanging=4)
    yield from wrapped(f"fingerprint  {one_line(report.fingerprint)}", indent=6, hanging=13)
    if report.allowed:
        yield from wrapped(f"allowed      {one_line(report.allowed)}", indent=6, hanging=13)


def _references(result: CaseResult) -> Iterator[str]:
    """Source of the case, the kernel function that decides, and the documentation."""
    docs = one_line(result.evidence.docs)
    for label, text in (
        ("case", result.location),
        ("decided by", result.evidence.spec),
        ("documented", docs),
        ("", documentation_link(docs)),
    ):
        if text:
            yield from wrapped(
                f"{label:<{_COLUMN}}{one_line(text)}" if label else text,
                indent=2 if label else 2 + _COLUMN,
                hanging=_COLUMN,
            )


def _content(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.strip("\r\n").splitlines()]
    return lines if any(lines) else []


def _elided(lines: Sequence[str]) -> list[str]:
    left_out = len(lines) - _FIRST_LINES - _LAST_LINES
    if left_out <= 1:
        return list(lines)
    note = f"[{left_out} lines left out; results.json has them]"
    return [*lines[:_FIRST_LINES], note, *lines[-_LAST_LINES:]]
