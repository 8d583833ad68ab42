"""What there is to tell of a matrix, in the order in which a maintainer asks for it.

Trouble first, then what changed from one kernel to the next, known deviations, where the kernels
and runs themselves differ, and where the time went.  All of it is data; each form of the report
words it for itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from conformance.abi.switches import SWITCHES, Switch
from conformance.report.matrix.table import Absence, Cell, Column, Group, Matrix, Row, grouped
from conformance.results.case_result import (
    UNEXPECTED,
    Contradiction,
    Outcome,
    RunVerdict,
    SkipReason,
)

# Of a run and not of what was run: they are no difference.
_PASSING = frozenset({"guests", "began", "took", "results"})
_SKIPPED = {reason.value: reason.sentence for reason in SkipReason}


@dataclass(frozen=True, slots=True)
class Told:
    """Variants of one function that showed the same, for one reason, on these kernels.

    ``before`` is what they showed on the kernel before, where that is what is told;
    ``elsewhere`` names an earlier one where the kernel before has no result of them.
    """

    group: Group
    outcome: Outcome
    reason: str
    columns: tuple[Column, ...]
    before: Outcome | None = None
    elsewhere: str = ""


@dataclass(frozen=True, slots=True)
class Turned:
    """A dated switch that two kernels have differently; ``case`` is the id of the one about it.

    ``since`` is the release that began it, in the later kernel's own series where stable got it;
    "" where no release did.
    """

    switch: Switch
    on: bool
    since: str
    case: str


@dataclass(frozen=True, slots=True)
class Step:
    """From one kernel to the next.

    ``begin`` and ``end`` count the cases that hold for the later kernel only, and for the earlier
    one only; ``turned`` are the dated switches in which their contracts differ.
    """

    earlier: Column
    later: Column
    changes: tuple[Told, ...]
    turned: tuple[Turned, ...]
    begin: int
    end: int

    @property
    def summary(self) -> str:
        """How many cases have another outcome, begin to hold and end to."""
        changed = sum(len(each.group.rows) for each in self.changes)
        parts = [f"{_cases(changed)} with another outcome"]
        parts += [f"{self.begin} begin to hold"] if self.begin else []
        parts += [f"{self.end} no longer hold"] if self.end else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of every run, in the order of columns; "" where a run does not say."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether any two runs differ in it, and that may be why they show something else."""
        return self.name not in _PASSING and len(set(self.values)) > 1


def told(matrix: Matrix, outcomes: Collection[Outcome]) -> list[Told]:
    """All results with one of these outcomes, those together that say the same."""
    found: dict[tuple[Outcome, str], dict[str, tuple[Row, list[Column]]]] = {}
    for row in matrix.rows:
        for column, cell in zip(matrix.columns, row.cells, strict=True):
            if cell.result is not None and cell.result.outcome in outcomes:
                key = cell.result.outcome, _reason(cell)
                found.setdefault(key, {}).setdefault(row.id, (row, []))[1].append(column)
    return [
        Told(group, outcome, reason, columns)
        for (outcome, reason), rows in found.items()
        for columns, group in _by_columns(rows.values())
    ]


def steps(matrix: Matrix) -> list[Step]:
    """What changed from each kernel to the one after it."""
    pairs = zip(matrix.columns, matrix.columns[1:], strict=False)
    return [_step(matrix, place, *pair) for place, pair in enumerate(pairs, start=1)]


def contradictions(matrix: Matrix) -> list[tuple[Column, Contradiction]]:
    """The dated switches that kernels contradict."""
    return [(column, each) for column in matrix.columns for each in column.record.contradictions]


def facts(matrix: Matrix) -> list[Fact]:
    """What is known of kernels, hosts and runs; a fact that no run has is left out."""
    runs = [dict(_facts(column)) for column in matrix.columns]
    names = dict.fromkeys(name for run in runs for name in run)
    rows = [Fact(name, tuple(run.get(name, "") for run in runs)) for name in names]
    return [row for row in rows if any(row.values)]


def options(matrix: Matrix) -> list[Fact]:
    """The options in which the configurations differ that are at hand.

    Only those that each of them has or could have: what a release does not know, or another
    option hides, says nothing.
    """
    known = [column.run.options for column in matrix.columns]
    at_hand = [each for each in known if each]
    shared = set.intersection(*map(set, at_hand)) if at_hand else set()
    rows = [Fact(name, tuple(each.get(name, "") for each in known)) for name in sorted(shared)]
    return [row for row in rows if len(set(filter(None, row.values))) > 1]


def slowest(matrix: Matrix, most: int) -> list[tuple[Row, Column, float]]:
    """The cases that took longest, each with the kernel on which it did, and its seconds."""
    found = [max(_seconds(matrix, row), key=lambda each: each[2]) for row in matrix.rows]
    return sorted(found, key=lambda each: -each[2])[:most]


def time_of(rows: Iterable[Row], place: int) -> float:
    """The seconds that rows took on the kernel in that column."""
    return sum(result.duration_s for row in rows if (result := row.cells[place].result) is not None)


def counted(matrix: Matrix) -> list[tuple[str, list[int]]]:
    """How many cases every kernel passed, and what others; a count of nothing is left out."""
    records = [column.record for column in matrix.columns]
    always = {
        "passed": [record.count(Outcome.PASS) for record in records],
        "known": [record.count(Outcome.XFAIL) for record in records],
        "unexpected": [record.count(*UNEXPECTED) for record in records],
    }
    seldom = {
        "skipped": [record.count(Outcome.SKIP) for record in records],
        "undecided": [record.count(Outcome.ERROR) for record in records],
        "not run": [record.missing for record in records],
    }
    return [*always.items(), *((name, each) for name, each in seldom.items() if any(each))]


def run_trouble(column: Column) -> str:
    """What is wrong with a run and is told by no case; "" when nothing is."""
    record = column.record
    if record.verdict is RunVerdict.NOT_BUILT:
        return record.note or _SKIPPED[SkipReason.NOT_BUILT]
    return record.trouble


def _cases(number: int) -> str:
    return f"{number or 'no'} case{'' if number == 1 else 's'}"


def nothing_unexpected(matrix: Matrix) -> str:
    """What to say where no case has trouble: no more than was judged."""
    judged = all(column.record.verdict is not RunVerdict.ERROR for column in matrix.columns)
    return "nothing unexpected" + ("" if judged else " in what was judged")


def _step(matrix: Matrix, place: int, earlier: Column, later: Column) -> Step:
    changed: dict[tuple[str, Outcome, Outcome, str], list[Row]] = {}
    begin = end = 0
    for row in matrix.rows:
        last, cell = row.cells[place - 1], row.cells[place]
        begin += last.absence is Absence.NOT_FOR_IT and cell.result is not None
        end += cell.absence is Absence.NOT_FOR_IT and last.result is not None
        if cell.result is not None and cell.before is not None:
            seen = cell.before.column
            elsewhere = "" if seen is earlier else seen.label
            key = elsewhere, cell.before.outcome, cell.result.outcome, _reason(cell)
            changed.setdefault(key, []).append(row)
    changes = tuple(
        Told(group, outcome, reason, (later,), before, elsewhere)
        for (elsewhere, before, outcome, reason), rows in changed.items()
        for group in grouped(rows)
    )
    turned = tuple(_turned(earlier, later, matrix.rows))
    return Step(earlier, later, changes, turned, begin, end)


def _turned(earlier: Column, later: Column, rows: Iterable[Row]) -> Iterator[Turned]:
    if earlier.profile is None or later.profile is None:
        return
    about = {row.case.switch: row.case.id for row in rows if row.case and row.case.switch}
    differing = earlier.profile.switches ^ later.profile.switches
    for switch in SWITCHES:
        if switch.name in differing:
            on = switch.name in later.profile.switches
            yield Turned(switch, on, _since(switch, later), about.get(switch.name, ""))


def _since(switch: Switch, column: Column) -> str:
    series = column.series(switch.kind)
    if series in switch.backports:
        return "{}.{}.{}".format(*series, switch.backports[series])
    return "" if switch.since is None else "{}.{}".format(*switch.since)


def _by_columns(
    rows: Iterable[tuple[Row, list[Column]]],
) -> Iterator[tuple[tuple[Column, ...], Group]]:
    """Groups of rows that are about the same kernels."""
    found: dict[tuple[str, ...], tuple[list[Column], list[Row]]] = {}
    for row, columns in rows:
        labels = tuple(column.label for column in columns)
        found.setdefault(labels, (columns, []))[1].append(row)
    for columns, alike in found.values():
        for group in grouped(alike):
            yield tuple(columns), group


def _reason(cell: Cell) -> str:
    result = cell.result
    if result is None:
        return ""
    if result.outcome is Outcome.SKIP:
        return _SKIPPED[result.reason]
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
    # Sixty-four digits: that they differ is all there is to say.
    yield "configuration", (kernel.config_sha256 or "")[:12]
    yield "accelerator", host["accel"]
    yield "why that one", host.get("accel_reason", "")
    # Of the host itself nothing is told: a page is handed on.
    yield "guests", host.get("guests", "")
    yield "suite", head.suite
    yield "began", head.started
    yield "took", f"{record.duration_s:.1f} s"
    yield "coverage", "; ".join(map(str, column.run.covered))
    yield "note", run_trouble(column)
    yield "results", column.run.place
