"""The data behind all forms of the report."""

from __future__ import annotations

from msgspec.structs import replace

from conformance.report.matrix.story import (
    also,
    contradictions,
    counted,
    facts,
    failed_results,
    failure_text,
    grouped_results,
    nothing_failed,
    options,
    other_results,
    run_trouble,
    slowest,
    time_of,
    transitions,
)
from conformance.report.matrix.table import Column, Matrix, matrix
from conformance.results.outcome import NOT_OK, Level, Outcome, SkipReason
from conformance.results.run import RunRecord
from conformance.results.stored_runs import Run
from tests.report.matrix.test_table import known
from tests.report.samples import case, contradiction, kernel, wrong


def of(*records: RunRecord) -> Matrix:
    cases = [
        known("a.new", "6.4.."),
        known("a.old", "5.18..6.3"),
        known("dated.persist", "6.4..", switch="persist"),
    ]
    return matrix([Run(record) for record in records], {each.id: each for each in cases})


def not_ok(_: Column, outcome: Outcome) -> bool:
    return outcome in NOT_OK


def failing(id: str, reason: str) -> RunRecord:
    return kernel(id, *(case(f"a.b.{n}", Outcome.FAIL, reason=reason, sentence="b") for n in "xy"))


def test_equal_results_of_several_kernels_are_one_group() -> None:
    found = of(failing("6.1", "it broke"), failing("6.12", "it broke"), failing("7.3", "otherwise"))
    alike, other = grouped_results(found, not_ok)
    assert (alike.group.name, len(alike.group.rows), alike.reason) == ("a.b", 2, "it broke")
    assert [column.label for column in alike.columns] == ["6.1", "6.12"]
    assert [column.label for column in other.columns] == ["7.3"]


def test_functions_with_one_difference_are_one_group() -> None:
    cases = [wrong("a.b"), *(wrong(f"c.d.{n}", sentence="s") for n in "xy"), wrong("e.f", "EBUSY")]
    (first, other) = grouped_results(of(kernel("6.12", *cases)), not_ok)
    assert (first.group.name, also(first), first.cases) == ("a.b", "c.d", 3)
    assert (other.group.name, also(other), other.cases) == ("e.f", "", 1)


def test_a_failure_is_shown_as_on_its_own_kernel() -> None:
    found = of(kernel("6.1", wrong("a.b", "EPERM")), kernel("6.12", wrong("a.b", "EBUSY")))
    texts = {each.columns[0].label: failure_text(each) for each in failed_results(found)}
    assert ["EPERM" in texts["6.1"], "EBUSY" in texts["6.1"]] == [True, False]
    assert ["EPERM" in texts["6.12"], "EBUSY" in texts["6.12"]] == [False, True]


def test_the_reason_of_a_skip_is_a_clause() -> None:
    found = of(kernel("6.12", case("a.b", Outcome.SKIP, reason=SkipReason.CONFIG)))
    skipped = grouped_results(found, lambda _, outcome: outcome is Outcome.SKIP)
    assert skipped[0].reason == SkipReason.CONFIG.sentence


def test_each_run_decides_what_fails_it() -> None:
    strict = kernel("6.12", case("a.b"))
    strict = replace(strict, head=replace(strict.head, fail_on=Level.DETAIL))
    noted = kernel("6.12", case("a.b", Outcome.NOTE), facts={"id": "6.12+fix"})
    assert failed_results(of(strict, noted)) == []
    ((title, outcome, _),) = other_results(of(strict, noted))
    assert (title, outcome) == ("Changed details", Outcome.NOTE)
    noted = replace(noted, head=replace(noted.head, fail_on=Level.DETAIL))
    assert [each.outcome for each in failed_results(of(strict, noted))] == [Outcome.NOTE]
    assert list(other_results(of(strict, noted))) == []


def test_a_transition_has_changed_new_and_ended_cases() -> None:
    before = kernel("6.1", case("a.b"), case("a.c"), case("a.old"))
    bug = case("a.b", Outcome.XFAIL, reason="known")
    (transition,) = transitions(of(before, kernel("6.12", bug, case("a.c"), case("a.new"))))
    (change,) = transition.changes
    assert (change.before, change.outcome, change.reason) == (Outcome.PASS, Outcome.XFAIL, "known")
    assert change.before_on == ""
    assert transition.summary == "1 case with another outcome, 1 begin to hold, 1 no longer hold"


def test_a_transition_lists_dated_switches() -> None:
    found = of(kernel("6.6", case("a.b")), kernel("6.8", case("dated.persist")))
    (transition,) = transitions(found)
    switches = {each.switch.name: each for each in transition.switch_changes}
    assert switches["persist"].on
    assert switches["persist"].case == "dated.persist"
    back = {"id": "without", "profile": "6.8,persist=no"}
    (transition,) = transitions(of(kernel("6.8"), kernel("6.8", facts=back)))
    assert [(each.switch.name, each.on, each.case) for each in transition.switch_changes] == [
        ("persist", False, "")
    ]


def test_a_switch_is_dated_by_the_series_of_the_later_kernel() -> None:
    (stable,) = transitions(of(kernel("6.1.10"), kernel("6.1.192")))
    (mainline,) = transitions(of(kernel("6.1.10"), kernel("6.12.117")))
    for transition, since in ((stable, "6.1.40"), (mainline, "6.5")):
        dated = {each.switch.name: each.since for each in transition.switch_changes}
        assert dated["ebadf_when_disabled"] == since


def test_a_bug_is_new_or_fixed() -> None:
    (transition,) = transitions(of(kernel("6.1.192"), kernel("6.12.117")))
    said = {each.switch.name: f"{each.verb}{each.when}" for each in transition.switch_changes}
    assert said["eprobe-sign"] == "new bug (since 6.2)"
    assert said["auto_delete"] == "now (since 6.4)"
    (transition,) = transitions(of(kernel("6.6.31"), kernel("6.6.34")))
    said = {each.switch.name: f"{each.verb}{each.when}" for each in transition.switch_changes}
    assert said["tracefs-inode-leak"] == "fixed (since 6.6.34)"
    (transition,) = transitions(of(kernel("6.6.30"), kernel("6.6.31")))
    said = {each.switch.name: f"{each.verb}{each.when}" for each in transition.switch_changes}
    assert said["tracefs-inode-leak"] == "new bug (since 6.6.31)"


def test_an_unknown_profile_has_no_switch_changes() -> None:
    (transition,) = transitions(of(kernel("6.6"), kernel("6.8", facts={"profile": "unheard"})))
    assert transition.switch_changes == ()


def test_one_run_has_no_transitions() -> None:
    assert transitions(of(kernel("6.12", case("a.b")))) == []
    assert transitions(of()) == []


def test_facts_are_marked_if_they_differ() -> None:
    found = {each.name: each for each in facts(of(kernel("6.1"), kernel("6.12")))}
    assert found["release"].values == ("6.1", "6.12")
    assert found["release"].differs
    assert not found["accelerator"].differs
    assert "variant" not in found


def test_options_that_differ_are_those_that_all_configurations_know() -> None:
    one = {"CONFIG_A": "y", "CONFIG_B": "n", "CONFIG_C": "y"}
    other = {"CONFIG_A": "y", "CONFIG_B": "y", "CONFIG_D": "y"}
    unknown = Run(kernel("6.8"))
    runs = [Run(kernel("6.1"), options=one), unknown, Run(kernel("6.12"), options=other)]
    found = [(each.name, each.values) for each in options(matrix(runs))]
    assert found == [("CONFIG_B", ("n", "", "y"))]
    assert options(matrix(runs[1:2])) == []


def test_zero_counts_are_left_out() -> None:
    plain = counted(of(kernel("6.12", case("a.b"))))
    assert plain == [("passed", [1]), ("known bugs", [0]), ("failed", [0])]
    some = counted(of(kernel("6.1"), kernel("6.12", case("a.b", Outcome.SKIP), selected=3)))
    assert some[3:] == [("skipped", [0, 1]), ("not run", [0, 2])]


def test_times() -> None:
    found = of(
        kernel("6.1", case("a.b", duration_s=0.5), case("a.c", duration_s=0.1)),
        kernel("6.12", case("a.b", duration_s=1.5)),
    )
    (row, column, seconds), _ = slowest(found, 2)
    assert (row.id, column.label, seconds) == ("a.b", "6.12", 1.5)
    assert [round(time_of(found.rows, place), 3) for place in (0, 1)] == [0.6, 1.5]


def test_problems_of_a_whole_run() -> None:
    without = kernel("6.1", not_built=True)
    broken = kernel("6.12", case("a.b"), selected=2, note="interrupted")
    first, second = map(run_trouble, of(without, broken).columns)
    assert first == "the kernel was built without user_events"
    assert second == "1 of 2 cases ended: interrupted"


def test_the_conclusion_covers_judged_cases_only() -> None:
    whole, part = kernel("6.1", case("a.b")), kernel("6.12", case("a.b"), selected=2)
    assert nothing_failed(of(whole)) == "nothing failed"
    assert nothing_failed(of(whole, part)) == "nothing failed among the judged cases"


def test_contradictions_have_their_kernel() -> None:
    found = of(kernel("6.12", case("a.b"), contradictions=(contradiction(),)))
    ((column, switch),) = contradictions(found)
    assert (column.label, switch.switch) == ("6.12", "ebadf_when_disabled")
