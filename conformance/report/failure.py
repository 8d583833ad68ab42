"""One unexpected result, told so that a reader need not run anything to judge it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from conformance.results.case_result import Blame, CaseResult, Mismatch, Report, Rerun, Which
from host.text import folded, one_line, printable, wrapped

# Enough for any ordinary case; a storm of thousands of operations is in results.json.
_HEAD_LINES = 12
_TAIL_LINES = 36


def render_failure(result: CaseResult) -> list[str]:
    """The result as lines of at most 100 columns, its first line the heading.

    What differs comes first, then the operations, what the model allows, what the kernel
    said, what the documentation says, and the console; parts without content are left out.
    """
    lines = wrapped(_heading(result), hanging=4)
    lines += wrapped(one_line(result.reason), indent=2) if result.reason else []
    if result.mismatches:
        lines.append("  what differs")
        for mismatch in result.mismatches:
            lines += _difference(mismatch)
    lines += _steps(result.evidence.steps)
    lines += _part("the model allows", result.evidence.model)
    lines += _part("the kernel said", result.evidence.kernel)
    if result.evidence.docs:
        lines += ["  the documentation says", *wrapped(result.evidence.docs.strip(), indent=4)]
    if result.reports:
        lines.append("  the kernel reported")
        for report in result.reports:
            lines += _reported(report)
    lines += _part("console", result.evidence.console)
    if result.adapted:
        lines += wrapped(adapted_line(result), indent=2)
    lines += wrapped(rerun_line(result.rerun), indent=2, hanging=2) if result.rerun else []
    return lines


def adapted_line(result: CaseResult) -> str:
    """One line about the switches of the result that are not those of the profile."""
    return f"judged with measured switches: {', '.join(result.adapted)}"


def rerun_line(rerun: Rerun) -> str:
    """One line about the other run of a case that was run twice."""
    blame = f", blame {rerun.blame}" if rerun.blame is not Blame.NONE else ""
    said = f"{rerun.outcome}{blame}" + (f": {one_line(rerun.reason)}" if rerun.reason else "")
    if rerun.of is Which.FIRST:
        return f"this is the re-run's result; the first run gave no verdict ({said})"
    return f"the first result stands; the re-run on a new guest gave {said}"


def _heading(result: CaseResult) -> str:
    blame = f"blame {result.blame}, " if result.blame is not Blame.NONE else ""
    return f"{result.outcome} {result.id} ({blame}{result.duration_s:.2f} s)"


def _difference(mismatch: Mismatch) -> list[str]:
    place = f"step {mismatch.step}" if mismatch.step else "the case as a whole"
    lines = wrapped(f"{place}, {one_line(mismatch.field)}", indent=4, hanging=4)
    if "\n" not in mismatch.allowed.strip() and "\n" not in mismatch.observed.strip():
        # As they are: what differs may be white space.
        for label, said in ("allowed ", mismatch.allowed), ("observed", mismatch.observed):
            shown = printable(said.strip("\n"))
            lines += wrapped(f"{label}  {shown}", indent=6, hanging=10)
        return lines
    changes = difflib.unified_diff(
        mismatch.allowed.splitlines(), mismatch.observed.splitlines(), n=1, lineterm=""
    )
    lines.append("      (- allowed, + observed)")
    # The first two lines of a unified diff name files, which these texts are not.
    return lines + folded(_elided(list(changes)[2:]), indent=6)


def _reported(report: Report) -> list[str]:
    lines = wrapped(one_line(str(report)), indent=4, hanging=4)
    lines += wrapped(f"fingerprint  {one_line(report.fingerprint)}", indent=6, hanging=13)
    if report.allowed:
        lines += wrapped(f"allowed      {one_line(report.allowed)}", indent=6, hanging=13)
    return lines


def _steps(steps: Sequence[str]) -> list[str]:
    lines = ["  operations performed"] if steps else []
    for step in _elided([one_line(each) for each in steps]):
        lines += wrapped(step, indent=4, hanging=4)
    return lines


def _part(title: str, text: str) -> list[str]:
    content = [line.rstrip() for line in text.strip("\r\n").splitlines()]
    if not any(content):
        return []
    return [f"  {title}", *folded(_elided(content), indent=4)]


def _elided(lines: Sequence[str]) -> list[str]:
    left_out = len(lines) - _HEAD_LINES - _TAIL_LINES
    if left_out <= 1:
        return list(lines)
    note = f"[{left_out} lines left out; results.json has them]"
    return [*lines[:_HEAD_LINES], note, *lines[-_TAIL_LINES:]]
