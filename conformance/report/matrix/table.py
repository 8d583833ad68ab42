"""The matrix of kernels and cases, as data for all forms of the report.

Columns are runs, sorted by booted release, then by the ABI that they are judged by.  Rows are
cases by surface.  An empty cell says whether its case does not apply to the kernel or did not run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum

from msgspec import Struct

from conformance.abi.profile import Profile, ProfileError, Release, profile_for
from conformance.abi.switch import Kind
from conformance.cases.case import Case
from conformance.cases.surfaces import listed
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Level, Outcome
from conformance.results.run import KernelFacts, RunRecord, self_check_of
from conformance.results.stored_runs import Run

# Sorts kernels of unknown release last.
_UNKNOWN = Release(1 << 16, 0)


class Absence(StrEnum):
    """Why a kernel has no result of a case."""

    NOT_FOR_IT = "not for this kernel"
    NOT_RUN = "not run"


class Column(Struct, frozen=True):
    """One run; ``label`` is its kernel, with the time if several runs are of one kernel.

    ``profile`` is None if this suite does not know it.
    """

    label: str
    run: Run
    profile: Profile | None

    @property
    def record(self) -> RunRecord:
        """The run of the column."""
        return self.run.record

    def series(self, kind: Kind) -> tuple[int, int]:
        """The stable series whose switches of a kind it has: see `profile_for`."""
        release, abi, *_ = _age(self)
        return (abi if kind is Kind.USER_EVENTS else release).series

    @property
    def verdict(self) -> str:
        """The verdict, or the result of a self-check."""
        record = self.record
        if record.head.self_check:
            return f"self-check {self_check_of(record)}"
        return record.verdict.value


class Before(Struct, frozen=True):
    """The outcome on the nearest earlier kernel with a result."""

    outcome: Outcome
    column: Column


class Cell(Struct, frozen=True):
    """A case on a kernel: a result, or why there is none.

    ``before`` is set if the outcome differs from that of the kernel before.
    """

    result: CaseResult | None
    absence: Absence | None = None
    before: Before | None = None


class Row(Struct, frozen=True):
    """A case on all kernels; ``case`` is its function in this suite, if it has one."""

    id: str
    case: Case | None
    cells: tuple[Cell, ...]

    @property
    def results(self) -> list[CaseResult]:
        """The results of the row."""
        return [cell.result for cell in self.cells if cell.result is not None]

    @property
    def surface(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]

    @property
    def tier(self) -> str:
        """The tier on the newest kernel that ran it."""
        return self.results[-1].tier

    @property
    def level(self) -> Level:
        """The level on the newest kernel that ran it."""
        return self.results[-1].level

    @property
    def sentence(self) -> str:
        """What it proves, from the newest run."""
        found = [each.sentence for each in self.results if each.sentence]
        return found[-1] if found else self.case.sentence if self.case else ""

    @property
    def docs(self) -> str:
        """The documentation, from the newest run that judged it."""
        judged = [each for each in self.results if each.outcome is not Outcome.SKIP]
        found = [each.evidence.reference for each in judged if each.evidence.docs]
        return found[-1] if found else ""


class Matrix(Struct, frozen=True):
    """All columns and rows."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def surfaces(self) -> dict[str, list[Row]]:
        """The rows by surface, in order."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.surface, []).append(row)
        return found


class Group(Struct, frozen=True):
    """Variants with the same sentence; ``name`` is the common part of their ids."""

    name: str
    rows: tuple[Row, ...]


def matrix(runs: Iterable[Run], cases: Mapping[str, Case] | None = None) -> Matrix:
    """The matrix of these runs; ``cases`` are the functions of this suite by id."""
    columns = tuple(sorted(_columns(list(runs)), key=_age))
    results = [{case.id: case for case in column.record.cases} for column in columns]
    ids = sorted({id for each in results for id in each}, key=listed)
    rows = []
    for id in ids:
        case = _case(id, cases or {})
        rows.append(Row(id, case, tuple(_cells(columns, [each.get(id) for each in results], case))))
    return Matrix(columns, tuple(rows))


def grouped(rows: Iterable[Row]) -> list[Group]:
    """Rows grouped by sentence, in order."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        sentence = row.sentence
        found.setdefault((row.surface, sentence, "" if sentence else row.id), []).append(row)
    return [Group(_common([row.id for row in group]), tuple(group)) for group in found.values()]


def _common(ids: Sequence[str]) -> str:
    """The common parts of ids; the first id if only the surface is common."""
    shared = []
    for parts in zip(*(id.split(".") for id in ids), strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared) if len(shared) > 1 else ids[0]


def _columns(runs: Sequence[Run]) -> Iterator[Column]:
    often = Counter(run.record.head.kernel.id for run in runs)
    labels: Counter[str] = Counter()
    for run in runs:
        head = run.record.head
        label = head.kernel.id if often[head.kernel.id] == 1 else f"{head.kernel.id} {head.started}"
        labels[label] += 1
        # Two runs that began within one second.
        numbered = label if labels[label] == 1 else f"{label} ({labels[label]})"
        yield Column(numbered, run, _profile(head.kernel))


def _profile(kernel: KernelFacts) -> Profile | None:
    # The release of an image may be any text.
    for base in (kernel.release, None):
        with suppress(ProfileError):
            return profile_for(kernel.profile, base=base)
    return None


def _age(column: Column) -> tuple[Release, Release, str, str]:
    head = column.record.head
    abi = column.profile.release if column.profile else _UNKNOWN
    try:
        release = Release.parse(head.kernel.release)
    except ProfileError:
        release = abi
    return release, abi, head.kernel.id, head.started


def _cells(
    columns: Sequence[Column], results: Sequence[CaseResult | None], case: Case | None
) -> Iterator[Cell]:
    before: Before | None = None
    for column, result in zip(columns, results, strict=True):
        if result is None:
            yield Cell(None, _absence(column.profile, case))
        else:
            differs = before is not None and before.outcome is not result.outcome
            yield Cell(result, before=before if differs else None)
            before = Before(result.outcome, column)


def _absence(profile: Profile | None, case: Case | None) -> Absence:
    if profile is None or case is None or case.applies(profile):
        return Absence.NOT_RUN
    return Absence.NOT_FOR_IT


def _case(id: str, cases: Mapping[str, Case]) -> Case | None:
    """The function of a case or variant."""
    while id:
        if id in cases:
            return cases[id]
        id = id.rpartition(".")[0]
    return None
