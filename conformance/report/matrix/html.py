"""The report as one HTML page: the text, and the matrix as data for a script.

The data are compact, since there may be many kernels and thousands of cases: a result is a letter
and a number, equal evidence is stored once, and lines of operations are indexes into a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup
from msgspec import Struct, field

from conformance.cases.case import Case
from conformance.report.difference import difference_lines
from conformance.report.failure import rerun_line
from conformance.report.html.pages import render_page
from conformance.report.matrix import story
from conformance.report.matrix.findings import Finding
from conformance.report.matrix.table import Absence, Cell, Column, Matrix, Row
from conformance.report.program import is_folded, program_lines
from conformance.repro.errors import NotExpressible
from conformance.repro.of_result import program_of_result
from conformance.results.case_result import CaseResult
from conformance.results.contradiction import abi_with
from conformance.results.outcome import NOT_OK, Blame, Outcome
from conformance.results.run import RunHead
from conformance.results.summary import short_digest

# Code of an outcome in the data, and the sign to show if there is no room for the word.
_CODES = {
    Outcome.PASS: ("P", "✓"),
    Outcome.FAIL: ("F", "F"),
    Outcome.CHANGED: ("c", "c"),
    Outcome.NOTE: ("n", "n"),
    Outcome.XFAIL: ("x", "x"),
    Outcome.FIXED: ("X", "+"),
    Outcome.SKIP: ("s", "s"),
    Outcome.CRASH: ("C", "C"),
    Outcome.TIMEOUT: ("T", "T"),
    Outcome.ERROR: ("E", "E"),
}
_ABSENT = {Absence.NOT_FOR_IT: (".", "·"), Absence.NOT_RUN: ("-", "-")}
# Stand-alone programs of failures on a page, about 15 kB each.
_MOST_PROGRAMS = 40
# Entries of one section; the list of cases has all.
_MOST = 40


def render_html(matrix: Matrix, findings: Sequence[Finding]) -> str:
    """Render the page."""
    known = [each for each in findings if any(each.names(row.id) for row in matrix.rows)]
    return render_page(
        "report.html",
        styles=("report.css",),
        scripts=("matrix.js", "rows.js", "evidence.js", "report.js"),
        matrix=matrix,
        story=story,
        data=payload(matrix, known),
        title=title(matrix),
        counted=story.counted(matrix),
        failed=story.failed_results(matrix),
        transitions=story.transitions(matrix),
        contradictions=story.contradictions(matrix),
        options=story.options(matrix),
        findings=list(_rendered(known)),
        abi_with=abi_with,
        most=_MOST,
    )


def title(matrix: Matrix) -> str:
    """The title of the page."""
    labels = [column.label for column in matrix.columns]
    if len(labels) <= 4:
        return f"user_events on {', '.join(labels)}"
    return f"user_events on {len(labels)} kernels, {labels[0]} to {labels[-1]}"


def _rendered(findings: Sequence[Finding]) -> Iterator[dict[str, Any]]:
    """Findings as HTML, with their numbers."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    for number, each in enumerate(findings):
        title, text = markdown.renderInline(each.title), markdown.render(each.text)
        yield {
            **{"number": number, "names": each.names},
            **{"title": Markup(title), "text": Markup(text)},
        }


def payload(matrix: Matrix, findings: Sequence[Finding]) -> dict[str, Any]:
    """The data of the page; matrix.js describes the keys."""
    tables = _Tables(findings, columns=matrix.columns)
    surfaces = list(matrix.surfaces)
    rows = [_row(row, surfaces.index(row.surface), tables) for row in matrix.rows]
    return {
        "columns": [
            {
                "label": column.label,
                "release": column.record.head.kernel.release,
                "command": column.record.head.command or "uevt run …",
            }
            for column in matrix.columns
        ],
        "outcomes": [[*_CODES[each], each.value, each in NOT_OK] for each in Outcome],
        "absent": [[*codes, absence.value] for absence, codes in _ABSENT.items()],
        "surfaces": surfaces,
        "functions": tables.functions.values,
        "lines": tables.lines.values,
        "details": tables.details.values,
        "rows": rows,
    }


class _Table:
    """Values numbered in order; equal values have one number."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[str, int] = {}

    def number(self, value: Any) -> int:
        """The number of a JSON value."""
        key = value if isinstance(value, str) else json.dumps(value)
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


class _Tables(Struct):
    findings: Sequence[Finding]
    functions: _Table = field(default_factory=_Table)
    lines: _Table = field(default_factory=_Table)
    details: _Table = field(default_factory=_Table)
    columns: Sequence[Column] = ()
    # Stand-alone programs on the page.
    programs: int = 0

    def numbers(self, lines: Sequence[str]) -> list[int]:
        """The numbers of lines of text."""
        return [self.lines.number(line) for line in lines]


def _row(row: Row, surface: int, tables: _Tables) -> list[Any]:
    """Surface, function, id, tier, letters, milliseconds, digests, and details."""
    named = [place for place, each in enumerate(tables.findings) if each.names(row.id)]
    function = [row.sentence, row.docs, _conditions(row.case), named, row.level.words]
    digests = [short_digest(each.digest or "") for each in row.results]
    return [
        surface,
        tables.functions.number(function),
        row.id,
        row.tier,
        "".join(map(_letter, row.cells)),
        [round(each.duration_s * 1000) for each in row.results],
        digests[0] if len(set(digests)) == 1 else digests,
        {
            place: tables.details.number(_detail(cell.result, tables, column.record.head))
            for place, (cell, column) in enumerate(zip(row.cells, tables.columns, strict=True))
            if cell.result is not None and _has_details(cell.result)
        },
    ]


def _letter(cell: Cell) -> str:
    if cell.result is not None:
        return _CODES[cell.result.outcome][0]
    return _ABSENT[cell.absence or Absence.NOT_RUN][0]


def _has_details(result: CaseResult) -> bool:
    passed = result.outcome is Outcome.PASS
    return not passed or bool(result.adapted or result.rerun or result.reason)


def _detail(result: CaseResult, tables: _Tables, head: RunHead) -> dict[str, Any]:
    """What explains a result; empty parts are left out."""
    evidence, listing = result.evidence, program_lines(result)
    found = {
        "blame": "" if result.blame is Blame.NONE else result.blame.value,
        "reason": "" if result.reason in map(str, result.mismatches) else result.reason,
        "bug": result.bug,
        "difference": tables.numbers(difference_lines(result)),
        "listing": tables.numbers(listing),
        "steps": tables.numbers(evidence.steps) if is_folded(listing) else [],
        "docs": evidence.docs if result.outcome is Outcome.SKIP else "",
        "program": _program(result, tables, head),
        "console": evidence.console,
        "rerun": rerun_line(result.rerun) if result.rerun else "",
        "adapted": list(result.adapted),
        "source": result.location,
    }
    return {name: value for name, value in found.items() if value}


def _program(result: CaseResult, tables: _Tables, head: RunHead) -> str:
    """The stand-alone program of a failure, of the first ones on a page."""
    if not result.unexpected or tables.programs == _MOST_PROGRAMS:
        return ""
    try:
        text = program_of_result(result, head)
    except NotExpressible:
        return ""
    tables.programs += 1
    return text


def _conditions(case: Case | None) -> str:
    """The kernels that a case applies to, in words."""
    if case is None:
        return ""
    parts = [case.profiles, *(f"with {name}" for name in case.needs)]
    return ", ".join([*parts, *(f"without {name}" for name in case.without)])
