"""results.ktap: runs in KTAP version 1, one nested test per surface.

The format is Documentation/dev-tools/ktap.rst; what its readers make of it: tests/report/export.
Case ids appear as they are: they hold nothing that a reader would have to escape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from conformance.report.failure import adapted_line, render_failure
from conformance.results.case_result import UNEXPECTED, CaseResult, Outcome, SkipReason
from conformance.results.run import RunHead, RunRecord, named
from host.files import write_atomically
from host.text import one_line

VERSION = "KTAP version 1"
RUN_ID = "uevt.run"
"""Name of the entry that stands for the run as a whole when no case tells its trouble."""

BAD = UNEXPECTED | {Outcome.ERROR}
"""Outcomes that are "not ok"."""
# ktap.rst knows SKIP, TODO, XFAIL, TIMEOUT and ERROR; a reader falls back to "not ok" for
# the words it does not know.
_WITHOUT_DIRECTIVE = {Outcome.PASS, Outcome.FAIL}
# kunit.py looks for "# SKIP" anywhere in a line, and other readers for "#" and the word.
_LIKE_A_DIRECTIVE = re.compile(r"#(?=\s*[A-Za-z])")


def write_ktap(record: RunRecord, path: Path) -> None:
    """Replace ``path`` by the run in KTAP.  Raises OSError."""
    write_atomically(path, render_ktap([record]))


def render_ktap(records: Iterable[RunRecord]) -> str:
    """Runs in KTAP, ending with a newline; of several, each is a subtest with its kernel's name."""
    runs = named(records)
    if len(runs) == 1:
        return "\n".join(_run(runs[0][1])) + "\n"
    lines = [VERSION, f"1..{len(runs)}"]
    for number, (name, record) in enumerate(runs, start=1):
        # A description must not have it at all.
        name = one_line(name).replace("#", r"\x23")
        lines += [f"  {line}" for line in _run(record, name)]
        bad = bool(record.trouble) or any(case.outcome in BAD for case in record.cases)
        if record.not_built:
            lines.append(result_line(number, name, "SKIP", detail(not_built_reason(record))))
        else:
            lines.append(result_line(number, name, ok=not bad))
    return "\n".join(lines) + "\n"


def _run(record: RunRecord, name: str = "") -> list[str]:
    surfaces = by_surface(record)
    trouble = detail(record.trouble)
    # Nothing but "# Subtest" between version and plan: kunit.py of 6.1 takes it for no plan.
    lines = [VERSION, f"# Subtest: {name}"] if name else [VERSION]
    lines.append(f"1..{len(surfaces) + (bool(trouble) or record.not_built)}")
    lines += head_lines(record.head)
    if contradicted := " ".join(each.override for each in record.contradictions):
        lines.append(f"# contradicted: {one_line(contradicted)}")
    for number, (surface, cases) in enumerate(surfaces.items(), start=1):
        lines += [f"  {line}" for line in _surface(surface, cases, record.head)]
        lines.append(_surface_result(number, surface, cases))
    if record.not_built:
        lines.append(result_line(1, RUN_ID, "SKIP", detail(not_built_reason(record))))
    elif trouble:
        lines.append(result_line(len(surfaces) + 1, RUN_ID, "ERROR", trouble, ok=False))
    return lines


def by_surface(record: RunRecord) -> dict[str, list[CaseResult]]:
    """The cases by surface, in the order in which they ended; none of a kernel without any."""
    surfaces: dict[str, list[CaseResult]] = {}
    for case in () if record.not_built else record.cases:
        surfaces.setdefault(case.surface, []).append(case)
    return surfaces


def not_built_reason(record: RunRecord) -> str:
    """Why nothing of a kernel without user_events was judged."""
    return record.note.strip() or SkipReason.NOT_BUILT.sentence


def head_lines(head: RunHead) -> list[str]:
    """What is known of a run before its first case, as diagnostic lines."""
    facts = {
        "kernel": head.kernel.id,
        "release": head.kernel.release,
        "profile": head.kernel.profile,
        "accel": head.host["accel"],
    }
    return [f"# {name}: {one_line(value)}" for name, value in facts.items() if value]


def _surface(surface: str, cases: list[CaseResult], head: RunHead) -> list[str]:
    lines = [VERSION, f"# Subtest: {surface}", f"1..{len(cases)}"]
    for number, case in enumerate(cases, start=1):
        lines += case_lines(number, case, head)
    return lines


def case_lines(number: int, case: CaseResult, head: RunHead) -> list[str]:
    """The result line of a case behind its diagnostic lines."""
    lines = []
    if case.outcome in BAD:
        # Evidence is indented behind its "#", so that no text of a kernel can be
        # taken for a "# Subtest:" line.
        lines = [f"# {line}" for line in render_failure(case, head)]
    elif case.adapted:
        lines = [f"# {one_line(adapted_line(case))}"]
    ok = case.outcome not in BAD
    if case.outcome in _WITHOUT_DIRECTIVE:
        return [*lines, result_line(number, case.id, ok=ok)]
    reason = case.reason
    if case.outcome is Outcome.SKIP:
        reason = f"{reason}: {SkipReason(case.reason).sentence}"
    return [*lines, result_line(number, case.id, case.outcome, detail(reason), ok=ok)]


def result_line(
    number: int, name: str, directive: str = "", said: str = "", *, ok: bool = True
) -> str:
    """One result; ``name`` and ``said`` are free of directives, see ``detail``."""
    line = f"{'ok' if ok else 'not ok'} {number} {name}"
    return f"{line} # {directive} {said}".rstrip() if directive else line


def detail(text: str) -> str:
    """A text on one line, in which no reader finds a directive."""
    return _LIKE_A_DIRECTIVE.sub(r"\\x23", one_line(text))


def _surface_result(number: int, surface: str, cases: list[CaseResult]) -> str:
    if any(case.outcome in BAD for case in cases):
        return result_line(number, surface, ok=False)
    if all(case.outcome is Outcome.SKIP for case in cases):
        return result_line(number, surface, "SKIP", "every case was skipped")
    return result_line(number, surface)
