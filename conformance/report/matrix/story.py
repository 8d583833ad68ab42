"""The contents of the report, as data for its text, Markdown and HTML forms.

Results by outcome, changes from one kernel to the next, differences between kernels and runs, and
the time that cases took.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec import Struct

from conformance.abi.switch import Switch
from conformance.abi.switches import SWITCHES
from conformance.report.causes import symptom
from conformance.report.failure import render_failure
from conformance.report.matrix.table import Absence, Cell, Column, Group, Matrix, Row, grouped
from conformance.results.contradiction import Contradiction
from conformance.results.outcome import LOST, Outcome, RunVerdict, SkipReason
from conformance.results.run import ALWAYS_SHOWN
from host.text import first

# Outcomes that fail every run, and the titles of the others.
_FAILED = LOST | {Outcome.FAIL, Outcome.ERROR}
_SECTIONS = {
    Outcome.CHANGED: "Changed behaviour, undocumented",
    Outcome.NOTE: "Changed details",
    Outcome.XFAIL: "Known bugs",
    Outcome.FIXED: "Fixed bugs",
}
_MOST_ALIKE = 30
# Facts of a run that differ every time.
_OF_A_RUN = frozenset({"guests", "began", "took", "results"})


class GroupedResult(Struct, frozen=True):
    """Variants of a function with one outcome for one reason, on these kernels.

    ``alike`` are other functions with the same difference, or the same known bug.  For a changed
    outcome ``before`` is that of the previous kernel; if that did not run them, ``before_on`` names
    the earlier kernel that did.
    """

    group: Group
    outcome: Outcome
    reason: str
    columns: tuple[Column, ...]
    before: Outcome | None = None
    before_on: str = ""
    alike: tuple[Group, ...] = ()

    def heading(self, arrow: str) -> tuple[str, str, str]:
        """Outcome, number of variants and kernels, for a person."""
        outcome, where = str(self.outcome), f"on {', '.join(one.label for one in self.columns)}"
        if self.before is not None:
            outcome = f"{self.before} {arrow} {self.outcome}"
            where = f"({self.before} on {self.before_on})" if self.before_on else ""
        variants = len(self.group.rows)
        return outcome, f"({variants} variants)" if variants > 1 else "", where

    @property
    def cases(self) -> int:
        """The number of cases."""
        return sum(len(each.rows) for each in (self.group, *self.alike))


class SwitchChange(Struct, frozen=True):
    """A dated switch that differs between two kernels; ``case`` is the id of its case.

    ``since`` is the first release with the change, in the series of the later kernel if it was
    backported there; "" if no release has it or if it is unknown.
    """

    switch: Switch
    on: bool
    since: str
    case: str

    @property
    def verb(self) -> str:
        """What became of the behaviour, or of the bug."""
        if self.switch.bug:
            return "fixed" if self.on else "new bug"
        return "now" if self.on else "no longer"

    @property
    def when(self) -> str:
        """`` (since RELEASE)``, or nothing."""
        return f" (since {self.since})" if self.since else ""


class Transition(Struct, frozen=True):
    """From one kernel to the next.

    ``begin`` and ``end`` count the cases that apply only to the later, and only to the earlier
    kernel; ``switch_changes`` are the dated switches that differ between their profiles.
    """

    earlier: Column
    later: Column
    changes: tuple[GroupedResult, ...]
    switch_changes: tuple[SwitchChange, ...]
    begin: int
    end: int

    @property
    def summary(self) -> str:
        """The numbers of changed cases and of those that begin or cease to apply."""
        changed = sum(len(each.group.rows) for each in self.changes)
        parts = [f"{_cases(changed)} with another outcome"]
        parts += [f"{self.begin} begin to hold"] if self.begin else []
        parts += [f"{self.end} no longer hold"] if self.end else []
        return ", ".join(parts)


class Fact(Struct, frozen=True):
    """One fact of every run, in the order of columns; "" if unknown."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether it differs between runs, and may explain different outcomes."""
        return self.name not in _OF_A_RUN and len(set(self.values)) > 1


def grouped_results(
    matrix: Matrix, wanted: Callable[[Column, Outcome], bool]
) -> list[GroupedResult]:
    """All results whose outcome is wanted of their kernel, those of one cause grouped."""
    found: dict[object, dict[str, tuple[Row, list[Column]]]] = {}
    reasons: dict[object, tuple[Outcome, str]] = {}
    for row in matrix.rows:
        for column, cell in zip(matrix.columns, row.cells, strict=True):
            if cell.result is not None and wanted(column, cell.result.outcome):
                reason = cell.result.outcome, _reason(cell)
                cause = reason if cell.result.bug else (reason[0], symptom(cell.result))
                reasons.setdefault(cause, reason)
                found.setdefault(cause, {}).setdefault(row.id, (row, []))[1].append(column)
    return [
        GroupedResult(group, *reasons[cause], columns, alike=tuple(alike))
        for cause, rows in found.items()
        for columns, (group, *alike) in _by_columns(rows.values())
    ]


def failed_results(matrix: Matrix) -> list[GroupedResult]:
    """The results that fail their run."""
    return grouped_results(matrix, _fails)


def other_results(matrix: Matrix) -> Iterator[tuple[str, Outcome, list[GroupedResult]]]:
    """Title, outcome and results of each further section that is not empty."""
    for outcome, title in _SECTIONS.items():
        found = grouped_results(matrix, partial(_passes_as, outcome))
        if found:
            yield title, outcome, found


def _fails(column: Column, outcome: Outcome) -> bool:
    return outcome in _FAILED or column.record.head.fails(outcome)


def _passes_as(wanted: Outcome, column: Column, outcome: Outcome) -> bool:
    return outcome is wanted and not _fails(column, outcome)


def failure_text(found: GroupedResult) -> str:
    """The first of these results as the terminal shows it, without heading and sentence."""
    column, row = found.columns[0], found.group.rows[0]
    # The same outcome on another kernel may have another cause.
    result = next(each for each in column.record.cases if each.id == row.id)
    heading = 1 + bool(result.sentence)
    return textwrap.dedent("\n".join(render_failure(result, column.record.head)[heading:]))


def also(found: GroupedResult) -> str:
    """The names of the other functions, most of them."""
    return ", ".join(first([each.name for each in found.alike], _MOST_ALIKE))


def transitions(matrix: Matrix) -> list[Transition]:
    """The changes from each kernel to the next."""
    pairs = zip(matrix.columns, matrix.columns[1:], strict=False)
    return [_transition(matrix, place, *pair) for place, pair in enumerate(pairs, start=1)]


def contradictions(matrix: Matrix) -> list[tuple[Column, Contradiction]]:
    """The dated switches that kernels contradict."""
    return [(column, each) for column in matrix.columns for each in column.record.contradicted]


def facts(matrix: Matrix) -> list[Fact]:
    """Facts about kernels, hosts and runs, without those unknown of all runs."""
    runs = [dict(_facts(column)) for column in matrix.columns]
    names = dict.fromkeys(name for run in runs for name in run)
    rows = [Fact(name, tuple(run.get(name, "") for run in runs)) for name in names]
    return [row for row in rows if any(row.values)]


def options(matrix: Matrix) -> list[Fact]:
    """The options that differ between the known configurations.

    Only options that each of them has: one that a release lacks, or that depends on another, says
    nothing.
    """
    known = [column.run.options for column in matrix.columns]
    at_hand = [each for each in known if each]
    shared = set.intersection(*map(set, at_hand)) if at_hand else set()
    rows = [Fact(name, tuple(each.get(name, "") for each in known)) for name in sorted(shared)]
    return [row for row in rows if len(set(filter(None, row.values))) > 1]


def slowest(matrix: Matrix, most: int) -> list[tuple[Row, Column, float]]:
    """The slowest cases, each with its slowest kernel and the seconds."""
    found = [max(_seconds(matrix, row), key=lambda each: each[2]) for row in matrix.rows]
    return sorted(found, key=lambda each: -each[2])[:most]


def time_of(rows: Iterable[Row], place: int) -> float:
    """The total seconds of rows on the kernel of a column."""
    return sum(result.duration_s for row in rows if (result := row.cells[place].result) is not None)


def counted(matrix: Matrix) -> list[tuple[str, list[int]]]:
    """The number of cases for every kernel by outcome, without counts that are all zero."""
    tallies = [column.record.tally for column in matrix.columns]
    words = tallies[0] if tallies else ALWAYS_SHOWN
    counts = [(word, [tally[word] for tally in tallies]) for word in words]
    return [(word, each) for word, each in counts if any(each) or word in ALWAYS_SHOWN]


def run_trouble(column: Column) -> str:
    """A problem of a run that no case shows, "" if there is none."""
    record = column.record
    return record.not_built_reason if record.not_built else record.trouble


def _cases(number: int) -> str:
    return f"{number or 'no'} case{'' if number == 1 else 's'}"


def nothing_failed(matrix: Matrix) -> str:
    """The sentence for a matrix without failures, which covers judged cases only."""
    judged = all(column.record.verdict is not RunVerdict.ERROR for column in matrix.columns)
    return "nothing failed" + ("" if judged else " among the judged cases")


def _transition(matrix: Matrix, place: int, earlier: Column, later: Column) -> Transition:
    changed: dict[tuple[str, Outcome, Outcome, str], list[Row]] = {}
    begin = end = 0
    for row in matrix.rows:
        last, cell = row.cells[place - 1], row.cells[place]
        begin += last.absence is Absence.NOT_FOR_IT and cell.result is not None
        end += cell.absence is Absence.NOT_FOR_IT and last.result is not None
        if cell.result is not None and cell.before is not None:
            seen = cell.before.column
            before_on = "" if seen is earlier else seen.label
            key = before_on, cell.before.outcome, cell.result.outcome, _reason(cell)
            changed.setdefault(key, []).append(row)
    changes = tuple(
        GroupedResult(group, outcome, reason, (later,), before, before_on)
        for (before_on, before, outcome, reason), rows in changed.items()
        for group in grouped(rows)
    )
    switches = tuple(_switch_changes(earlier, later, matrix.rows))
    return Transition(earlier, later, changes, switches, begin, end)


def _switch_changes(earlier: Column, later: Column, rows: Iterable[Row]) -> Iterator[SwitchChange]:
    if earlier.profile is None or later.profile is None:
        return
    about = {row.case.switch: row.case.id for row in rows if row.case and row.case.switch}
    differing = earlier.profile.switches ^ later.profile.switches
    for switch in SWITCHES:
        if switch.name in differing:
            on = switch.name in later.profile.switches
            since = _since(switch, later, on=on)
            yield SwitchChange(switch, on, since, about.get(switch.name, ""))


def _since(switch: Switch, column: Column, *, on: bool) -> str:
    series = column.series(switch.kind)
    stable = switch.backports if on else switch.introduced_stable
    first = switch.since if on else switch.introduced
    if series in stable:
        first = (*series, stable[series])
    return "" if first is None else ".".join(map(str, first))


def _by_columns(
    rows: Iterable[tuple[Row, list[Column]]],
) -> Iterator[tuple[tuple[Column, ...], list[Group]]]:
    """Groups of rows with the same kernels."""
    found: dict[tuple[str, ...], tuple[list[Column], list[Row]]] = {}
    for row, columns in rows:
        labels = tuple(column.label for column in columns)
        found.setdefault(labels, (columns, []))[1].append(row)
    for columns, alike in found.values():
        yield tuple(columns), grouped(alike)


def _reason(cell: Cell) -> str:
    result = cell.result
    if result is None:
        return ""
    if result.outcome is Outcome.SKIP:
        return SkipReason(result.reason).sentence
    return result.reason or "; ".join(str(each) for each in result.mismatches[:1])


def _seconds(matrix: Matrix, row: Row) -> list[tuple[Row, Column, float]]:
    return [
        (row, column, cell.result.duration_s)
        for column, cell in zip(matrix.columns, row.cells, strict=True)
        if cell.result is not None
    ]


def _facts(column: Column) -> Iterator[tuple[str, str]]:
    record = column.record
    head, kernel, host = record.head, record.head.kernel, record.head.host
    yield "release", kernel.release
    yield "judged as", kernel.profile.replace(",", ", ")
    yield "variant", kernel.variant or ""
    yield "source", kernel.source or ""
    yield "patches", ", ".join(each.name for each in kernel.patches)
    # Of 64 digits, to show that configurations differ.
    yield "configuration", (kernel.config_sha256 or "")[:12]
    yield "accelerator", host["accel"]
    yield "why that one", host.get("accel_reason", "")
    # No facts about the host itself: the page is meant for publication.
    yield "guests", host.get("guests", "")
    yield "suite", head.suite
    yield "began", head.started
    yield "took", f"{record.duration_s:.1f} s"
    yield "coverage", "; ".join(map(str, column.run.covered))
    yield "note", run_trouble(column)
    yield "results", column.run.place
