"""docs/seeds.md names cases that exist, and kernels on which they passed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from msgspec import Struct

from conformance.report.matrix.findings import read_findings
from conformance.results.summary import Summary
from tests.cases.variants import all_variants

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ROOT / "docs" / "seeds.md"
KEPT = {
    path.stem: Summary.read(path) for path in sorted((ROOT / "docs" / "results").glob("*.json"))
}
# A row without a note names all kernels of this list on which its cases passed.
ALL = ("6.1-byte-status", "6.1", "6.12", "7.3", "rfc-v1")
# No release has its interface, which needs no note.
NEVER_RELEASED = ("6.1-bpf-iter",)
SECTIONS = (
    "Changes",
    "The header as first merged",
    "The message of the first commit",
    "The documentation proposed in version 4",
    "The first version and its review",
    "The header of eBPF",
)

_ID = re.compile(r"`([a-z0-9_]+(?:\.[a-z0-9_-]+)+)`")
# In a note: cases, and the kernels on which they passed.
_CLAIM = re.compile(r"(`[^`]+`(?:, `[^`]+`)*) on (all|\d[\w.-]*(?:, \d[\w.-]*)*)")
_PASSED = {"PASS", "XFAIL"}


class Row(Struct, frozen=True):
    """A statement, its cases, the kernels on which they passed, and a note."""

    line: int
    statement: str
    ids: tuple[str, ...]
    kernels: tuple[str, ...]
    note: str

    @property
    def claims(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Cases and the kernels on which they passed, as the row and its note claim."""
        found = [
            (tuple(_ID.findall(ids)), kernels_of(kernels))
            for ids, kernels in _CLAIM.findall(self.note)
        ]
        return ([(self.ids, self.kernels)] if self.ids else []) + found

    def __str__(self) -> str:
        return f"seeds.md:{self.line}: {self.statement}"


def kernels_of(text: str) -> tuple[str, ...]:
    """The kernels of a list, or of the word for all but rfc-v1."""
    return ALL[:-1] if text == "all" else tuple(text.split(", ")) if text else ()


def rows() -> list[Row]:
    """All statements of docs/seeds.md."""
    found = []
    for number, line in enumerate(SEEDS.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("| ") or line.startswith(("| statement |", "| --- |")):
            continue
        statement, ids, kernels, note = (cell.strip() for cell in line[1:-1].split("|"))
        found.append(Row(number, statement, tuple(_ID.findall(ids)), kernels_of(kernels), note))
    return found


@cache
def known_ids() -> set[str]:
    """Ids of cases, and of their variants."""
    return {id for each in all_variants() for id in (each.id, each.case.id)}


def outcomes(id: str, kernel: str) -> set[str]:
    """The outcomes of a case's variants on a kernel, as docs/results records them."""
    cases = KEPT[kernel].cases
    return {shown.outcome for name, shown in cases.items() if f"{name}.".startswith(f"{id}.")}


@cache
def recorded(kernel: str) -> set[str]:
    """Ids that docs/results has for a kernel; a new case has none until `make matrix` runs."""
    parts = [name.split(".") for name in KEPT[kernel].cases]
    return {".".join(words[:size]) for words in parts for size in range(2, len(words) + 1)}


def passed(id: str, kernel: str) -> bool:
    """Whether all variants of a case passed on a kernel."""
    return bool(outcomes(id, kernel)) and outcomes(id, kernel) <= _PASSED


ROWS = rows()


def test_every_document_has_its_section() -> None:
    heads = re.findall(r"^## (.+)$", SEEDS.read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(heads) == SECTIONS
    assert len(ROWS) >= 80


def test_every_case_exists() -> None:
    surfaces = {each.case.surface for each in all_variants()}
    named = _ID.findall(SEEDS.read_text(encoding="utf-8"))
    named = [id for id in named if id.partition(".")[0] in surfaces]
    named += [id for row in ROWS for ids, _ in row.claims for id in ids]
    assert set(named) - known_ids() == set()


def test_every_documented_case_is_named() -> None:
    written = {each.case.id for each in all_variants() if each.case.surface == "documented"}
    named = {id for row in ROWS for ids, _ in row.claims for id in ids}
    assert written <= named


def test_a_row_names_cases_and_kernels_or_says_why_not() -> None:
    wrong = [
        row
        for row in ROWS
        if not row.statement
        or bool(row.ids) != bool(row.kernels)
        or not (row.ids or row.note.startswith("settled: "))
        or set(_ID.findall(row.note)) - {id for ids, _ in row.claims for id in ids}
    ]
    assert [str(row) for row in wrong] == []


def test_a_note_names_the_page_that_has_one_of_the_cases() -> None:
    """What is a finding or a behaviour is described there."""
    wrong = [
        str(row)
        for row in ROWS
        for page in re.findall(r"\w+\.md|\ba finding\b", row.note)
        if not any(
            section.names(id)
            for section in read_findings(SEEDS.with_name(page))
            for ids, _ in row.claims
            for id in ids
        )
    ]
    assert wrong == []


def test_cases_passed_on_the_kernels_that_a_row_names() -> None:
    wrong = [
        f"{row}: {id} on {kernel}: {', '.join(outcomes(id, kernel))}"
        for row in ROWS
        for ids, kernels in row.claims
        for id in ids
        for kernel in kernels
        if id in recorded(kernel) and not passed(id, kernel)
    ]
    assert wrong == []


def test_a_row_without_a_note_names_all_kernels() -> None:
    wrong = [
        str(row)
        for row in ROWS
        if not row.note
        and row.kernels != NEVER_RELEASED
        and all(id in recorded(kernel) for kernel in row.kernels for id in row.ids)
        and row.kernels != tuple(k for k in ALL if all(passed(id, k) for id in row.ids))
    ]
    assert wrong == []
