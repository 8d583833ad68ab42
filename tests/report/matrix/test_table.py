"""The matrix of kernels and cases."""

from __future__ import annotations

from typing import Any

from conformance.cases.case import Case, Isolation, Tier
from conformance.report.matrix.table import Absence, Matrix, grouped, matrix
from conformance.results.outcome import Outcome
from conformance.results.run import RunRecord
from conformance.results.stored_runs import Run
from tests.report.samples import case, kernel


def known(id: str, profiles: str, **others: object) -> Case:
    facts: dict[str, Any] = {"id": id, "profiles": profiles, "spec": "", "doc": "", "needs": ()}
    return Case(**{**facts, "tier": Tier.QUICK, "isolation": Isolation.NONE, **others})


def of(*records: RunRecord, cases: tuple[Case, ...] = ()) -> Matrix:
    return matrix([Run(record) for record in records], {each.id: each for each in cases})


def labels(found: Matrix) -> list[str]:
    return [column.label for column in found.columns]


def test_kernels_are_sorted_by_release_then_abi() -> None:
    byte_status = {"id": "6.1-byte-status", "profile": "byte-status", "release": "6.1.192"}
    records = [kernel(each) for each in ("6.12.117", "7.3.4", "6.1.192", "5.19")]
    found = of(*records, kernel("6.1.192", facts=byte_status))
    assert labels(found) == ["5.19", "6.1-byte-status", "6.1.192", "6.12.117", "7.3.4"]


def test_an_unknown_release_is_sorted_by_its_abi_or_last() -> None:
    own = {"id": "image", "release": "unheard"}
    odd = {"id": "odd", "release": "", "profile": "unheard"}
    found = of(kernel("7.3"), kernel("6.1", facts=odd), kernel("6.8", facts=own), kernel("6.1"))
    assert labels(found) == ["6.1", "image", "7.3", "odd"]


def test_runs_of_one_kernel_have_unique_labels() -> None:
    found = of(kernel("6.1"), kernel("6.12"), kernel("6.12"))
    began = "6.12 2026-11-20T17:44:00Z"
    assert labels(found) == ["6.1", began, f"{began} (2)"]


def test_surfaces_are_in_the_order_of_use() -> None:
    ids = ("a.b", "rfc.a", "write.b", "write.a", "header.z")
    found = of(kernel("6.12", *map(case, ids)))
    assert [row.id for row in found.rows] == ["header.z", "write.a", "write.b", "a.b", "rfc.a"]
    assert [*found.surfaces] == ["header", "write", "a", "rfc"]


def test_a_changed_outcome_is_marked() -> None:
    found = of(
        kernel("6.1", case("a.b"), case("a.c")),
        kernel("6.4", case("a.c")),
        kernel("6.12", case("a.b", Outcome.FAIL), case("a.c")),
        kernel("7.3", case("a.b", Outcome.FAIL), case("a.c")),
    )
    differing, same = ([cell.before for cell in row.cells] for row in found.rows)
    before = differing[2]
    assert before is not None
    # 6.4 did not run it.
    assert (before.outcome, before.column.label) == (Outcome.PASS, "6.1")
    assert [each for each in differing if each] == [before]
    assert not any(same)


def test_an_empty_cell_says_why() -> None:
    found = of(
        kernel("6.1"),
        kernel("6.12"),
        kernel("7.3", case("a.new.x"), case("a.old"), case("a.unheard_of")),
        cases=(known("a.new", "6.4.."), known("a.old", "5.18..")),
    )
    absent = {row.id: [cell.absence for cell in row.cells] for row in found.rows}
    assert absent == {
        "a.new.x": [Absence.NOT_FOR_IT, Absence.NOT_RUN, None],
        "a.old": [Absence.NOT_RUN, Absence.NOT_RUN, None],
        "a.unheard_of": [Absence.NOT_RUN, Absence.NOT_RUN, None],
    }


def test_the_sentence_is_that_of_the_run_else_of_the_suite() -> None:
    run_then = kernel("6.12", case("a.b", sentence="as it was"), case("a.c"), case("a.d"))
    cases = (known("a.b", "5.18..", sentence="today"), known("a.c", "5.18..", sentence="today"))
    found = of(run_then, cases=cases)
    assert [row.sentence for row in found.rows] == ["as it was", "today", ""]


def test_variants_with_one_sentence_are_one_group() -> None:
    ids = ("a.b.x", "a.b.y-1", "a.c", "a.d")
    sentences = ("one", "one", "", "")
    cases = [case(id, sentence=each) for id, each in zip(ids, sentences, strict=True)]
    groups = grouped(of(kernel("6.12", *cases)).rows)
    assert [(each.name, len(each.rows)) for each in groups] == [("a.b", 2), ("a.c", 1), ("a.d", 1)]


def test_a_group_is_not_named_by_its_surface_only() -> None:
    cases = [case("a.b", sentence="one"), case("a.c", sentence="one")]
    assert [each.name for each in grouped(of(kernel("6.12", *cases)).rows)] == ["a.b"]


def test_no_runs_give_an_empty_matrix() -> None:
    assert of() == Matrix((), ())
