"""Levels and known bugs decide what a deviation counts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from conformance.abi.profile import profile_for
from conformance.cases.case import Case, Isolation, Tier
from conformance.results.case_result import CaseResult, Mismatch, Report
from conformance.results.outcome import Level, Outcome
from conformance.runner.grading import graded

BUG = "eprobe-event-freed"
PRESENT = profile_for("6.12")
FIXED = profile_for(f"6.12,{BUG}=fixed")
ERRNO = Mismatch(1, "errno", "EBUSY", "success")
WARNING = Report("warn", "WARNING: x", "warn:a/b/c", ("a", "b", "c"))


def case(level: Level = Level.CONTRACT, switch: str = "", bugs: tuple[str, ...] = ()) -> Case:
    return Case(
        *("a.b", "", "", "5.18..", (), Tier.QUICK, Isolation.EVENTS),
        switch=switch,
        level=level,
        bugs=bugs,
    )


def ended(outcome: Outcome, *mismatches: Mismatch, reports: tuple[Report, ...] = ()) -> CaseResult:
    return CaseResult("a.b", "a", "quick", outcome, mismatches=mismatches, reports=reports)


@pytest.mark.parametrize(
    ("level", "outcome"),
    [
        (Level.CONTRACT, Outcome.FAIL),
        (Level.BEHAVIOUR, Outcome.CHANGED),
        (Level.DETAIL, Outcome.NOTE),
    ],
)
def test_a_deviation_counts_by_the_level_of_its_case(level: Level, outcome: Outcome) -> None:
    assert graded(ended(Outcome.FAIL, ERRNO), case(level), PRESENT, ()).outcome is outcome


@pytest.mark.parametrize("outcome", [Outcome.CRASH, Outcome.TIMEOUT, Outcome.ERROR, Outcome.PASS])
def test_other_outcomes_do_not_depend_on_the_level(outcome: Outcome) -> None:
    assert graded(ended(outcome), case(Level.DETAIL), PRESENT, ()).outcome is outcome


@pytest.mark.parametrize(
    ("observed", "outcome"),
    [("01 a5 00", Outcome.NOTE), ("00 a4 00", Outcome.NOTE), ("00 00 00", Outcome.FAIL)],
)
def test_overwritten_memory_is_a_failure_at_every_level(observed: str, outcome: Outcome) -> None:
    found = ended(Outcome.FAIL, Mismatch(1, "memory a1 0x1000", "00 a5 00", observed))
    assert graded(found, case(Level.DETAIL), PRESENT, ()).outcome is outcome


def test_a_kernel_report_is_a_failure_at_every_level() -> None:
    found = ended(Outcome.FAIL, ERRNO, Mismatch(0, "console", "", "WARNING"), reports=(WARNING,))
    assert graded(found, case(Level.DETAIL), PRESENT, ()).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("doc", "observed", "outcome"),
    [
        pytest.param("size is checked", "E2BIG", Outcome.CHANGED, id="undocumented"),
        pytest.param("otherwise -EBUSY", "E2BIG", Outcome.FAIL, id="documented"),
        pytest.param("size is checked", "success", Outcome.FAIL, id="accepted"),
    ],
)
def test_another_errno_of_a_refusal_is_undocumented_behaviour(
    doc: str, observed: str, outcome: Outcome
) -> None:
    found = ended(Outcome.FAIL, replace(ERRNO, observed=observed))
    assert graded(found, replace(case(), doc=doc), PRESENT, ()).outcome is outcome
    weak = replace(case(Level.DETAIL), doc=doc)
    assert graded(found, weak, PRESENT, ()).outcome is Outcome.NOTE


def test_a_failure_without_a_mismatch_counts_by_its_level() -> None:
    assert graded(ended(Outcome.FAIL), case(), PRESENT, ()).outcome is Outcome.FAIL


def test_a_known_bug_is_expected_or_fixed() -> None:
    about, passed = case(switch=BUG, bugs=(BUG,)), replace(ended(Outcome.PASS), bug=BUG)
    present = graded(passed, about, PRESENT, ())
    assert (present.outcome, present.bug) == (Outcome.XFAIL, BUG)
    assert "an event is deleted while an eprobe still refers to it" in present.reason
    fixed = graded(passed, about, PRESENT, {BUG})
    assert (fixed.outcome, fixed.bug) == (Outcome.FIXED, BUG)
    assert graded(passed, about, FIXED, ()).outcome is Outcome.PASS
    unaffected = ended(Outcome.PASS)
    assert graded(unaffected, about, PRESENT, ()).outcome is Outcome.PASS


def test_a_bug_that_shows_by_chance_is_expected_of_every_case() -> None:
    bug = "status-reads-freed-event"
    passed = replace(ended(Outcome.PASS), bug=bug)
    assert graded(passed, case(), PRESENT, ()).outcome is Outcome.XFAIL
    wrong = replace(ended(Outcome.FAIL, ERRNO), bug=bug)
    assert graded(wrong, case(), PRESENT, ()).outcome is Outcome.FAIL


def test_a_bug_that_came_back_is_at_most_changed_behaviour() -> None:
    found = ended(Outcome.FAIL, ERRNO)
    assert graded(found, case(bugs=(BUG,)), FIXED, {BUG}).outcome is Outcome.CHANGED
    weak = case(Level.DETAIL, bugs=(BUG,))
    assert graded(found, weak, FIXED, {BUG}).outcome is Outcome.NOTE


def test_another_deviation_of_a_case_about_a_fixed_bug_counts_in_full() -> None:
    found = ended(Outcome.FAIL, ERRNO)
    assert graded(found, case(bugs=(BUG,)), FIXED, ()).outcome is Outcome.FAIL


def test_a_dated_fact_of_the_base_fails_no_run() -> None:
    found = ended(Outcome.FAIL, ERRNO)
    assert graded(found, case(switch="ids_reused"), PRESENT, ()).outcome is Outcome.NOTE
    assert graded(found, case(switch="persist"), PRESENT, ()).outcome is Outcome.FAIL
