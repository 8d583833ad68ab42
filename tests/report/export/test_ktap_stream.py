"""Streaming KTAP: valid wherever it stops."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from hypothesis import given
from msgspec.structs import replace

from conformance.report.export.ktap_stream import KtapRuns, KtapStream
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Outcome, SkipReason
from conformance.results.run import RunRecord
from tests.report.conftest import Kunit
from tests.report.export.ktap_reader import read_ktap
from tests.report.samples import UNHURRIED, case, contradiction, head, mixed, run, runs

UNBUILT = run(case("write.a", Outcome.SKIP, reason=SkipReason.NOT_BUILT), not_built=True)


def streamed(record: RunRecord, *, require: bool = False, remarks: int = 0) -> str:
    """The stream of a run that ends with this record; its first results are of no case."""
    stream = io.StringIO()
    view = KtapStream(stream, record.head, require=require)
    view.begin(record.selected)
    for each in record.cases[:remarks]:
        view.remark(each)
    for each in record.cases[remarks:]:
        view.case(each)
    view.end(record)
    return stream.getvalue()


def last(text: str) -> tuple[bool, str, str]:
    """The entry about the run as a whole: ok, directive, detail."""
    entry = read_ktap(text).subtests[-1]
    assert entry.name == "uevt.run"
    return entry.ok, entry.directive, entry.detail


@UNHURRIED
@given(runs())
def test_any_run_is_valid_and_complete(record: RunRecord) -> None:
    top = read_ktap(streamed(record))
    shown = {each.name: each.ok for each in top.subtests}
    whole = {"uevt.run": not record.trouble}
    cases = {each.id: not record.head.fails(each.outcome) for each in record.cases}
    assert shown == cases | whole


def test_the_document_of_a_run_with_one_of_everything(golden: Callable[[str, str], None]) -> None:
    golden("stream.ktap", streamed(mixed()))


def test_lines_are_flushed_when_their_case_ends() -> None:
    stream = io.StringIO()
    view = KtapStream(stream, head())
    view.begin(2)
    assert stream.getvalue().startswith("KTAP version 1\n1..3\n# kernel: 6.12\n")
    view.case(case("write.a"))
    assert stream.getvalue().endswith("\n# accel: tcg\nok 1 write.a\n")


def test_an_interrupted_run_bails_out() -> None:
    text = streamed(run(case("write.a"), selected=3, note="interrupted"))
    assert read_ktap(text).bailed_out == "1 of 3 cases ended: interrupted"
    assert last(text)[:2] == (False, "ERROR")


def test_a_run_without_a_result_bails_out() -> None:
    stream = io.StringIO()
    view = KtapStream(stream, head())
    view.begin(2)
    view.case(case("write.a"))
    view.end(None)
    top = read_ktap(stream.getvalue())
    assert ([each.name for each in top.subtests], bool(top.bailed_out)) == (["write.a"], True)


def test_a_run_that_never_began_prints_nothing() -> None:
    stream = io.StringIO()
    KtapStream(stream, head()).end(None)
    assert stream.getvalue() == ""


def test_problems_of_the_run_have_an_entry() -> None:
    assert last(streamed(run(case("write.a")))) == (True, "", "")
    assert last(streamed(run(case("write.a", Outcome.FAIL)))) == (True, "", "")
    *found, detail = last(streamed(run(case("write.a"), contradictions=(contradiction(),))))
    assert found == [False, "ERROR"]
    assert "ebadf_when_disabled" in detail


@pytest.mark.parametrize(
    ("extra", "whole", "line"),
    [
        (
            case("dated.persist.probe", Outcome.CRASH, reason="Kernel panic"),
            (False, "ERROR", "dated.persist.probe CRASH"),
            "# CRASH dated.persist.probe (0.00 s)",
        ),
        (case("module.mine.load"), (True, "", ""), ""),
    ],
)
def test_extra_results_that_fail_are_named_in_the_entry_of_the_run(
    extra: CaseResult, whole: tuple[bool, str, str], line: str
) -> None:
    text = streamed(run(extra, case("write.a"), selected=1), remarks=1)
    assert last(text) == whole
    assert line in text


@pytest.mark.parametrize(
    ("require", "ok", "directive"), [(False, True, "SKIP"), (True, False, "ERROR")]
)
def test_a_kernel_without_user_events(require: bool, ok: bool, directive: str) -> None:
    text = streamed(replace(UNBUILT, note="it has none"), require=require)
    assert last(text) == (ok, directive, "it has none")
    assert last(streamed(UNBUILT, require=require))[2] == SkipReason.NOT_BUILT.sentence
    first = read_ktap(text).subtests[0]
    assert (first.ok, first.directive) == (True, "SKIP")
    assert first.detail == "not_built: the kernel was built without user_events"


def test_a_self_check_says_that_no_kernel_was_judged() -> None:
    why = "a self-check of the suite: no kernel was judged"
    good, bad = (
        streamed(run(case("write.a", outcome), head=head(self_check=True)))
        for outcome in (Outcome.PASS, Outcome.FAIL)
    )
    whole = read_ktap(good).subtests[-1]
    assert (whole.name, whole.ok, whole.directive, whole.detail) == ("uevt.run", True, "SKIP", why)
    one, other = read_ktap(several(good, bad)).subtests
    assert (one.ok, one.directive, one.detail) == (True, "SKIP", why)
    assert (other.ok, other.directive) == (False, "")


def several(*texts: str, planned: int | None = None, bail_out: str = "") -> str:
    """The stream of several runs."""
    stream = io.StringIO()
    sections = KtapRuns(stream, planned or len(texts))
    for number, text in enumerate(texts, start=1):
        sections.run(f"kernel-{number}", text.splitlines(keepends=True))
    if bail_out:
        sections.bail_out(bail_out)
    return stream.getvalue()


def test_several_kernels_are_subtests() -> None:
    good = streamed(run(case("write.a"), case("write.b", Outcome.XFAIL, reason="known")))
    bad = streamed(run(case("write.a", Outcome.FAIL)))
    top = read_ktap(several(good, bad, streamed(UNBUILT)))
    assert [(each.name, each.ok, each.directive) for each in top.subtests] == [
        ("kernel-1", True, ""),
        ("kernel-2", False, ""),
        ("kernel-3", True, "SKIP"),
    ]
    assert [each.name for each in top.subtests[0].subtests] == ["write.a", "write.b", "uevt.run"]


@pytest.mark.parametrize("lines", [2, 6, 7, 8])
def test_a_kernel_that_was_cut_off_is_not_ok(lines: int) -> None:
    whole = streamed(run(case("write.a"), case("write.b"))).splitlines(keepends=True)
    assert len(whole) == 9
    text = several("".join(whole[:lines]))
    assert text.splitlines()[-1].startswith("not ok 1 kernel-1")


def test_missing_kernels_bail_out() -> None:
    cut = streamed(run(case("write.a"), selected=3, note="interrupted"))
    top = read_ktap(several(cut, planned=3, bail_out="interrupted"))
    assert (len(top.subtests), top.bailed_out) == (1, "interrupted")


def counted(kunit: Kunit, text: str) -> tuple[int, int, int, int]:
    """Passed, failed, skipped, errors, as kunit counts them."""
    counts = kunit(text).counts
    return counts.passed, counts.failed, counts.skipped, counts.errors


def test_kunit_reads_a_run(kunit: Kunit) -> None:
    # kunit reads ERROR, TIMEOUT, CRASH and XFAIL as plain results.
    assert counted(kunit, streamed(mixed())) == (7, 4, 1, 0)
    assert counted(kunit, streamed(run(case("write.a"), case("write.b")))) == (3, 0, 0, 0)


def test_kunit_reads_several_runs(kunit: Kunit) -> None:
    good, bad = run(case("write.a")), run(case("write.a", Outcome.FAIL))
    assert counted(kunit, several(streamed(good), streamed(bad))) == (3, 1, 0, 0)


def test_kunit_detects_a_run_that_was_cut_off(kunit: Kunit) -> None:
    text = streamed(run(case("write.a"), selected=3, note="interrupted"))
    assert counted(kunit, text)[3] > 0
