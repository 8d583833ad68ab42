"""docs/seeds.md names cases that exist, and kernels on which they passed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from conformance.results.summary import Summary
from tests.cases.variants import all_variants

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ROOT / "docs" / "seeds.md"
KEPT = {
    path.stem: Summary.read(path) for path in sorted((ROOT / "docs" / "results").glob("*.json"))
}
# The kernels that a row without a note names, all that its cases passed on: those of the
# releases, and one with what was never merged.
ALL = ("6.1-byte-status", "6.1", "6.12", "7.3", "rfc-v1")
SECTIONS = (
    "The header as first merged",
    "The message of the first commit",
    "The documentation proposed in version 4",
    "The first version and its review",
    "The header of eBPF",
)

_ID = re.compile(r"`([a-z0-9_]+(?:\.[a-z0-9_-]+)+)`")
# In a note: cases, and the kernels on which they passed.
_CLAIM = re.compile(r"(`[^`]+`(?:, `[^`]+`)*) on (\d[\w.-]*(?:, \d[\w.-]*)*)")
_PASSED = {"PASS", "XFAIL"}


@dataclass(frozen=True, slots=True)
class Row:
    """A statement: its cases, the kernels they passed on, the note, the claims within it."""

    line: int
    statement: str
    ids: tuple[str, ...]
    kernels: tuple[str, ...]
    note: str

    @property
    def claims(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Cases and the kernels they are said to have passed on, those of the note too."""
        found = [
            (tuple(_ID.findall(ids)), tuple(kernels.split(", ")))
            for ids, kernels in _CLAIM.findall(self.note)
        ]
        return ([(self.ids, self.kernels)] if self.ids else []) + found

    def __str__(self) -> str:
        return f"seeds.md:{self.line}: {self.statement}"


def rows() -> list[Row]:
    """All statements of docs/seeds.md."""
    found = []
    for number, line in enumerate(SEEDS.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("| ") or line.startswith(("| statement |", "| --- |")):
            continue
        statement, ids, kernels, note = (cell.strip() for cell in line[1:-1].split("|"))
        named = tuple(kernels.split(", ")) if kernels else ()
        found.append(Row(number, statement, tuple(_ID.findall(ids)), named, note))
    return found


@cache
def known_ids() -> set[str]:
    """Ids of cases, and of their variants."""
    return {id for each in all_variants() for id in (each.id, each.case.id)}


def outcomes(id: str, kernel: str) -> set[str]:
    """What the variants of a case, or one of them, showed on a kernel."""
    assert kernel in KEPT, f"there is no docs/results/{kernel}.json: run make matrix"
    cases = KEPT[kernel].cases
    return {shown.outcome for name, shown in cases.items() if f"{name}.".startswith(f"{id}.")}


def passed(id: str, kernel: str) -> bool:
    """Whether a case passed on a kernel, all its variants."""
    return bool(outcomes(id, kernel)) and outcomes(id, kernel) <= _PASSED


ROWS = rows()
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line-{row.line}")


def test_every_document_has_its_section() -> None:
    heads = re.findall(r"^## (.+)$", SEEDS.read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(heads) == SECTIONS
    assert len(ROWS) >= 80


def test_every_case_exists() -> None:
    surfaces = {each.case.surface for each in all_variants()}
    named = _ID.findall(SEEDS.read_text(encoding="utf-8"))
    assert {
        id for id in named if id.partition(".")[0] in surfaces and id not in known_ids()
    } == set()


def test_every_documented_case_is_named() -> None:
    written = {each.case.id for each in all_variants() if each.case.surface == "documented"}
    named = {id for row in ROWS for ids, _ in row.claims for id in ids}
    assert written <= named


@each_row
def test_a_row_has_cases_and_kernels_or_says_why_not(row: Row) -> None:
    assert row.statement
    assert bool(row.ids) == bool(row.kernels), row
    assert row.ids or row.note.startswith("settled: "), row


@each_row
def test_a_note_leaves_no_case_without_kernels(row: Row) -> None:
    claimed = [id for ids, _ in row.claims for id in ids]
    assert [id for id in (*row.ids, *_ID.findall(row.note)) if id not in claimed] == [], row
    assert {id for id in claimed if id not in known_ids()} == set(), row


@each_row
def test_what_is_said_to_have_passed_did(row: Row) -> None:
    wrong = [
        (id, kernel, outcomes(id, kernel))
        for ids, kernels in row.claims
        for id in ids
        for kernel in kernels
        if not passed(id, kernel)
    ]
    assert wrong == [], f"{row}: run make matrix if the cases are new"


@each_row
def test_a_row_without_a_note_leaves_out_no_kernel(row: Row) -> None:
    if row.note:
        return
    assert row.kernels == tuple(k for k in ALL if all(passed(id, k) for id in row.ids)), row
