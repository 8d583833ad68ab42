"""results.ktap, read by a strict reader written from the kernel's document."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given

from conformance.report.export.ktap import render_ktap, write_ktap
from conformance.results.outcome import Level, Outcome, SkipReason
from conformance.results.run import KernelFacts, RunRecord
from tests.report.export.ktap_reader import KtapError, read_ktap
from tests.report.samples import UNHURRIED, case, contradicted, head, mixed, run, runs, wrong


@UNHURRIED
@given(runs())
def test_any_run_is_valid_and_complete(record: RunRecord) -> None:
    top = read_ktap(render_ktap([record]))
    shown = {each.name: each.ok for each in top.leaves() if each.name}
    expected = {each.id: not record.head.fails(each.outcome) for each in record.cases}
    # Grouped by surface, in the order of their first cases.
    surfaces = list(dict.fromkeys(each.surface for each in record.cases))
    names = sorted(expected, key=lambda name: surfaces.index(name.partition(".")[0]))
    ordered = {name: expected[name] for name in names}
    assert list(shown.items()) == list({**ordered, "uevt.run": not record.trouble}.items())


def test_the_line_of_the_run_makes_a_deviation_not_ok() -> None:
    weak = wrong("a.b", outcome=Outcome.NOTE, level=Level.DETAIL)
    strict = run(weak, head=head(fail_on=Level.DETAIL))
    leaf, _ = read_ktap(render_ktap([strict])).leaves()
    assert (leaf.ok, leaf.directive) == (False, "")
    assert leaf.diagnostics[0] == "# NOTE a.b (detail, 0.00 s)"


def test_a_kernel_without_user_events_is_skipped() -> None:
    unbuilt = case("write.a", Outcome.SKIP, reason=SkipReason.NOT_BUILT)
    for record in (run(not_built=True), run(unbuilt, not_built=True)):
        (entry,) = read_ktap(render_ktap([record])).subtests
        assert (entry.name, entry.ok, entry.directive) == ("uevt.run", True, "SKIP")
        assert entry.detail == "the kernel was built without user_events"


def test_an_interrupted_run_is_not_ok() -> None:
    top = read_ktap(render_ktap([run(case("write.a"), selected=2, note="interrupted")]))
    last = top.subtests[-1]
    assert (last.name, last.ok, last.directive) == ("uevt.run", False, "ERROR")
    assert last.detail == "1 of 2 cases ended: interrupted"


def test_several_kernels_are_subtests() -> None:
    good, bad = run(case("write.a")), run(case("write.a", Outcome.FAIL))
    cut = run(case("write.a"), selected=2, head=head(kernel=KernelFacts("a #1", "", "6.12")))
    top = read_ktap(render_ktap([good, bad, cut, run(not_built=True)]))
    assert [(each.name, each.ok, each.directive) for each in top.subtests] == [
        ("6.12", True, ""),
        ("6.12-2", False, ""),
        (r"a \x231", False, ""),
        ("6.12-3", True, "SKIP"),
    ]
    assert [leaf.name for leaf in top.leaves()] == [*(("write.a", "uevt.run") * 3), "uevt.run"]


def test_an_oops_is_not_changed() -> None:
    reason = "Oops: 0002 [#1] PREEMPT SMP"
    assert reason in render_ktap([run(case("write.a", Outcome.CRASH, reason=reason))])


def test_the_document_of_a_run_with_one_of_everything(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    path = tmp_path / "results.ktap"
    write_ktap(mixed(), path)
    golden("mixed.ktap", path.read_text(encoding="utf-8"))


def test_measured_switches_are_comments() -> None:
    lines = [line.strip() for line in render_ktap([contradicted()]).splitlines()]
    assert "# contradicted: ebadf_when_disabled=no persist=yes" in lines
    shown = lines.index("# judged with measured switches: ebadf_when_disabled, persist")
    assert lines[shown + 1] == "ok 1 write.a"


@pytest.mark.parametrize(
    "text",
    [
        "KTAP version 1\n1..1\n",
        "KTAP version 1\n1..1\nok 2 a\n",
        "KTAP version 1\n1..1\nok 1 a # CRASH it\n",
        "KTAP version 1\n1..1\nok 1 a # ERROR it\n",
        "KTAP version 1\n1..1\nok 1 a\nnoise\n",
        "KTAP version 1\n1..1\n  KTAP version 1\n  1..1\n  not ok 1 b\nok 1 a\n",
        "1..1\nok 1 a\n",
        "KTAP version 1\n1..1\nok 1 a",
    ],
    ids=range(8),
)
def test_the_reader_refuses_invalid_lines(text: str) -> None:
    with pytest.raises(KtapError):
        read_ktap(text)
