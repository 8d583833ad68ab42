"""results.ktap: runs in KTAP version 1, one nested test per surface.

The format is Documentation/dev-tools/ktap.rst; tests/report/export has its readers.  Case ids need
no escaping.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from conformance.report.failure import adapted_line, remark, render_failure
from conformance.results.case_result import CaseResult
from conformance.results.outcome import DEVIATIONS, Outcome
from conformance.results.run import RunHead, RunRecord, with_names
from host.files import write_atomically
from host.text import one_line

VERSION = "KTAP version 1"
RUN_ID = "uevt.run"
"""Name of the entry for the run as a whole."""

# ktap.rst has SKIP, TODO, XFAIL, TIMEOUT and ERROR; for other words readers go by "not ok".
_WITHOUT_DIRECTIVE = DEVIATIONS | {Outcome.PASS, Outcome.FIXED}
# kunit.py searches for "# SKIP" anywhere in a line, other readers for "#" and a word.
_LIKE_A_DIRECTIVE = re.compile(r"#(?=\s*[A-Za-z])")


def write_ktap(record: RunRecord, path: Path) -> None:
    """Write a run as KTAP, atomically.  Raises OSError."""
    write_atomically(path, render_ktap([record]))


def render_ktap(records: Iterable[RunRecord]) -> str:
    """Render runs; several are subtests named by their kernels."""
    runs = with_names(records)
    if len(runs) == 1:
        return "\n".join(_run(runs[0][1])) + "\n"
    lines = [VERSION, f"1..{len(runs)}"]
    for number, (name, record) in enumerate(runs, start=1):
        # A description must not contain it.
        name = one_line(name).replace("#", r"\x23")
        lines += [f"  {line}" for line in _run(record, name)]
        bad = not record.not_built and (record.trouble or record.failures)
        if record.judged_nothing and not bad:
            lines.append(result_line(number, name, "SKIP", detail(record.judged_nothing)))
        else:
            lines.append(result_line(number, name, ok=not bad))
    return "\n".join(lines) + "\n"


def _run(record: RunRecord, name: str = "") -> list[str]:
    surfaces = by_surface(record)
    trouble = detail(record.trouble)
    # Only "# Subtest" may stand between version and plan: kunit.py of 6.1 misses the plan
    # otherwise.
    lines = [VERSION, f"# Subtest: {name}"] if name else [VERSION]
    lines.append(f"1..{len(surfaces) + 1}")
    lines += head_lines(record.head)
    if contradicted := " ".join(each.override for each in record.contradicted):
        lines.append(f"# contradicted: {one_line(contradicted)}")
    for number, (surface, cases) in enumerate(surfaces.items(), start=1):
        lines += [f"  {VERSION}", f"  # Subtest: {surface}", f"  1..{len(cases)}"]
        for at, case in enumerate(cases, start=1):
            lines += [f"  {line}" for line in case_lines(at, case, record.head)]
        lines.append(_surface_result(number, surface, cases, record.head))
    last = len(surfaces) + 1
    if record.judged_nothing:
        return [*lines, result_line(last, RUN_ID, "SKIP", detail(record.judged_nothing))]
    directive = "ERROR" if trouble else ""
    return [*lines, result_line(last, RUN_ID, directive, trouble, ok=not trouble)]


def by_surface(record: RunRecord) -> dict[str, list[CaseResult]]:
    """The cases by surface, in their order; none if user_events is not built."""
    surfaces: dict[str, list[CaseResult]] = {}
    for case in () if record.not_built else record.cases:
        surfaces.setdefault(case.surface, []).append(case)
    return surfaces


def head_lines(head: RunHead) -> list[str]:
    """The facts known before the first case, as diagnostic lines."""
    facts = {
        "kernel": head.kernel.id,
        "release": head.kernel.release,
        "profile": head.kernel.profile,
        "accel": head.host["accel"],
    }
    return [f"# {name}: {one_line(value)}" for name, value in facts.items() if value]


def case_lines(number: int, case: CaseResult, head: RunHead) -> list[str]:
    """The result line of a case after its diagnostic lines."""
    ok = not head.fails(case.outcome)
    if ok:
        lines = [f"# {detail(line)}" for line in remarks(case)]
    else:
        # Evidence is indented after "#", so that no kernel text reads as a "# Subtest:" line.
        lines = [f"# {line}" for line in render_failure(case, head)]
    if case.outcome in _WITHOUT_DIRECTIVE:
        return [*lines, result_line(number, case.id, ok=ok)]
    return [*lines, result_line(number, case.id, case.outcome, detail(case.explanation), ok=ok)]


def remarks(case: CaseResult) -> list[str]:
    """What a reader has to know of a case that fails no run: a deviation, measured switches."""
    lines = [remark(case), one_line(adapted_line(case)) if case.adapted else ""]
    return [line for line in lines if line]


def result_line(
    number: int, name: str, directive: str = "", text: str = "", *, ok: bool = True
) -> str:
    """One result line; ``name`` and ``text`` must be free of directives, see ``detail``."""
    line = f"{'ok' if ok else 'not ok'} {number} {name}"
    return f"{line} # {directive} {text}".rstrip() if directive else line


def detail(text: str) -> str:
    """A text on one line, without anything that readers take for a directive."""
    return _LIKE_A_DIRECTIVE.sub(r"\\x23", one_line(text))


def _surface_result(number: int, surface: str, cases: list[CaseResult], head: RunHead) -> str:
    if any(head.fails(case.outcome) for case in cases):
        return result_line(number, surface, ok=False)
    if all(case.outcome is Outcome.SKIP for case in cases):
        return result_line(number, surface, "SKIP", "every case was skipped")
    return result_line(number, surface)
