"""results.ktap: the run in KTAP version 1, one nested test per surface.

The format is Documentation/dev-tools/ktap.rst.  Case ids appear as they are: they hold
nothing that a reader would have to escape or slug.
"""

from __future__ import annotations

from pathlib import Path

from conformance.outcome import UNEXPECTED, CaseResult, Outcome, SkipReason
from conformance.report.failure import adapted_line, render_failure
from conformance.report.files import write_atomically
from conformance.report.record import RunHead, RunRecord
from conformance.report.text import one_line

NAME = "results.ktap"
VERSION = "KTAP version 1"
RUN_ID = "uevt.run"
"""Name of the entry that stands for the run as a whole when no case tells its trouble."""

# ktap.rst knows SKIP, TODO, XFAIL, TIMEOUT and ERROR; a reader falls back to "not ok" for
# the words it does not know.
_BAD = UNEXPECTED | {Outcome.ERROR}
_WITHOUT_DIRECTIVE = {Outcome.PASS, Outcome.FAIL}


def write_ktap(record: RunRecord, path: Path) -> None:
    """Replace ``path`` by the run in KTAP.  Raises OSError."""
    write_atomically(path, render_ktap(record))


def render_ktap(record: RunRecord) -> str:
    """The run in KTAP, ending with a newline."""
    head = head_lines(record.head)
    if contradicted := " ".join(each.override for each in record.contradictions):
        head.append(f"# contradicted: {one_line(contradicted)}")
    if record.not_built:
        reason = one_line(record.note) or SkipReason.NOT_BUILT.sentence
        return "\n".join([VERSION, *head, f"1..0 # SKIP {reason}"]) + "\n"
    surfaces: dict[str, list[CaseResult]] = {}
    for case in record.cases:
        surfaces.setdefault(case.surface, []).append(case)
    trouble = one_line(record.trouble)
    lines = [VERSION, *head, f"1..{len(surfaces) + bool(trouble)}"]
    for number, (surface, cases) in enumerate(surfaces.items(), start=1):
        lines += [f"  {line}" for line in _surface(surface, cases)]
        lines.append(_surface_result(number, surface, cases))
    if trouble:
        lines.append(f"not ok {len(surfaces) + 1} {RUN_ID} # ERROR {trouble}")
    return "\n".join(lines) + "\n"


def head_lines(head: RunHead) -> list[str]:
    """What is known of a run before its first case, as diagnostic lines."""
    facts = {
        "kernel": head.kernel.id,
        "release": head.kernel.release,
        "profile": head.kernel.profile,
        "accel": head.host["accel"],
    }
    return [f"# {name}: {one_line(value)}" for name, value in facts.items() if value]


def _surface(surface: str, cases: list[CaseResult]) -> list[str]:
    lines = [VERSION, f"# Subtest: {surface}", f"1..{len(cases)}"]
    for number, case in enumerate(cases, start=1):
        lines += case_lines(number, case)
    return lines


def case_lines(number: int, case: CaseResult) -> list[str]:
    """The result line of a case behind its diagnostic lines."""
    lines = []
    if case.outcome in _BAD:
        # Evidence is indented behind its "#", so that no text of a kernel can be
        # taken for a "# Subtest:" line.
        lines = [f"# {line}" for line in render_failure(case)]
    elif case.adapted:
        lines = [f"# {one_line(adapted_line(case))}"]
    return [*lines, _case_result(number, case)]


def _case_result(number: int, case: CaseResult) -> str:
    line = f"{'not ok' if case.outcome in _BAD else 'ok'} {number} {case.id}"
    if case.outcome in _WITHOUT_DIRECTIVE:
        return line
    reason = one_line(case.reason)
    if case.outcome is Outcome.SKIP:
        reason = f"{reason}: {SkipReason(case.reason).sentence}"
    return f"{line} # {case.outcome} {reason}".rstrip()


def _surface_result(number: int, surface: str, cases: list[CaseResult]) -> str:
    if any(case.outcome in _BAD for case in cases):
        return f"not ok {number} {surface}"
    if all(case.outcome is Outcome.SKIP for case in cases):
        return f"ok {number} {surface} # SKIP every case was skipped"
    return f"ok {number} {surface}"
