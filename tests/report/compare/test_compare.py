"""Differences between two runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from conformance.report.compare.compare import compare
from conformance.report.compare.differences import differences
from conformance.report.compare.evidence import evidence_of
from conformance.report.compare.kinds import REGRESSIONS, Kind
from conformance.report.compare.text import render_page
from conformance.results.case_result import CaseResult, Mismatch
from conformance.results.contradiction import Contradiction
from conformance.results.outcome import Level, Outcome, SkipReason
from tests.report.samples import case, head, run, wrong

P, F, XF, XP = Outcome.PASS, Outcome.FAIL, Outcome.XFAIL, Outcome.FIXED
CH, N = Outcome.CHANGED, Outcome.NOTE
S, C, T, E = Outcome.SKIP, Outcome.CRASH, Outcome.TIMEOUT, Outcome.ERROR
SWITCH = Contradiction("nonspaced_match", True, "spaces do not matter", "a title", "dated.spaces")


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        (P, P, None), (P, XF, Kind.BUG), (P, F, Kind.BROKEN), (P, C, Kind.BROKEN),
        (P, T, Kind.BROKEN), (P, S, Kind.UNDECIDED), (P, E, Kind.UNDECIDED),
        (P, XP, Kind.OTHERWISE),
        (XF, P, Kind.FIXED), (XF, XP, Kind.FIXED), (XF, F, Kind.BROKEN), (XF, XF, None),
        (XP, XF, Kind.BUG), (XP, F, Kind.BROKEN), (XP, P, Kind.OTHERWISE),
        (F, F, None), (F, P, Kind.FIXED), (F, XF, Kind.EXPLAINED), (F, C, Kind.WORSE),
        (F, T, Kind.WORSE), (F, E, Kind.UNDECIDED), (F, S, Kind.UNDECIDED),
        (C, F, Kind.DIFFERENT), (C, T, Kind.DIFFERENT), (C, P, Kind.FIXED),
        (P, CH, Kind.BROKEN), (P, N, Kind.BROKEN), (XF, CH, Kind.BROKEN), (CH, XF, Kind.EXPLAINED),
        (N, CH, Kind.WORSE), (CH, F, Kind.WORSE), (N, C, Kind.WORSE), (F, N, Kind.DIFFERENT),
        (CH, P, Kind.FIXED), (N, XP, Kind.FIXED), (CH, CH, None), (CH, S, Kind.UNDECIDED),
        (S, F, Kind.BROKEN), (E, F, Kind.BROKEN), (S, S, None), (S, E, Kind.OTHERWISE),
        (S, P, Kind.DECIDED), (E, P, Kind.DECIDED), (S, XF, Kind.DECIDED), (E, E, None),
        (None, P, Kind.APPEARED), (None, F, Kind.APPEARED), (P, None, Kind.VANISHED),
        (F, None, Kind.VANISHED),
    ],
)  # fmt: skip
def test_the_kind_of_each_pair_of_outcomes(
    base: Outcome | None, new: Outcome | None, expected: Kind | None
) -> None:
    before, after = (run() if each is None else run(case("a.b", each)) for each in (base, new))
    comparison = compare(before, after)
    assert [change.kind for change in comparison.changes] == ([expected] if expected else [])
    weak = new in (XF, CH, N)
    assert comparison.regression is (expected in REGRESSIONS and not weak)
    strict = compare(before, after, fail_on=Level.DETAIL)
    assert strict.regression is (expected in REGRESSIONS)


def test_what_a_kernel_keeps_of_a_case_is_a_regression() -> None:
    clean, left = run(case("a.b")), run(case("a.b"), case("a.b.leftover", F))
    (change,) = compare(clean, left).changes
    assert (change.id, change.kind) == ("a.b.leftover", Kind.BROKEN)
    assert compare(clean, left).regression
    assert [each.kind for each in compare(left, clean).changes] == [Kind.FIXED]


@pytest.mark.parametrize(
    ("result", "failing"),
    [
        (case("a.b", F), {Level.CONTRACT, Level.BEHAVIOUR, Level.DETAIL}),
        (case("a.b", C, level=Level.DETAIL), {Level.CONTRACT, Level.BEHAVIOUR, Level.DETAIL}),
        (case("a.b", CH, level=Level.BEHAVIOUR), {Level.BEHAVIOUR, Level.DETAIL}),
        (case("a.b", N, level=Level.DETAIL), {Level.DETAIL}),
        # The date of a fix is uncertain: a bug that came is behaviour at most.
        (case("a.b", XF), {Level.BEHAVIOUR, Level.DETAIL}),
        (case("a.b", XF, level=Level.DETAIL), {Level.DETAIL}),
    ],
)
def test_worse_is_a_regression_from_a_level_on(result: CaseResult, failing: set[Level]) -> None:
    base, new = run(case("a.b")), run(result)
    assert {line for line in Level if compare(base, new, fail_on=line).regression} == failing


def test_another_level_for_the_same_deviation_is_not_worse() -> None:
    before = run(wrong("a.b", outcome=N, level=Level.DETAIL))
    assert not compare(before, run(wrong("a.b")), fail_on=Level.DETAIL).regression
    assert compare(before, run(wrong("a.b", "EIO")), fail_on=Level.DETAIL).regression


def test_a_run_equals_itself() -> None:
    same = run(case("a.a"), wrong("a.b"), case("a.c", S), case("a.d", XF), case("a.e", C))
    assert not compare(same, same).different
    assert compare(same, same).same == 5


@pytest.mark.parametrize(
    ("before", "now", "differs"),
    [
        ("0", "EPERM", True),
        ('name "t00091_e0"', 'name "t00007_e0"', False),
        ("at 0x200000000000", "at 0x7f0000000000", False),
        ("17", "18", True),
    ],
)
def test_a_different_failure_is_a_change(before: str, now: str, differs: bool) -> None:
    found = compare(run(wrong("a.b", before)), run(wrong("a.b", now))).changes
    assert [change.kind for change in found] == ([Kind.DIFFERENT] if differs else [])


def test_a_newly_contradicted_switch_is_a_regression() -> None:
    adapted = case("a.b", adapted=("nonspaced_match",))
    base, new = run(case("a.b")), run(adapted, contradictions=(SWITCH,))
    comparison = compare(base, new)
    assert comparison.newly_contradicted == (SWITCH,)
    assert comparison.regression
    assert [change.kind for change in comparison.changes] == [Kind.OTHERWISE]
    noted = replace(SWITCH, outcome=Outcome.NOTE)
    weak = run(adapted, contradictions=(noted,))
    assert not compare(base, weak).regression
    assert compare(base, weak, fail_on=Level.DETAIL).regression
    back = compare(new, base)
    assert (back.no_longer_contradicted, back.regression) == ((SWITCH,), False)


def test_losing_user_events_is_a_regression() -> None:
    unbuilt = run(case("a.b", S, reason=SkipReason.NOT_BUILT), not_built=True)
    comparison = compare(run(case("a.b")), unbuilt)
    assert comparison.lost_user_events
    assert comparison.regression
    assert comparison.changes == ()
    assert "the new kernel has no user_events" in render_page(comparison)
    assert not compare(unbuilt, unbuilt).different
    back = compare(unbuilt, run(case("a.b", F)))
    assert (back.regression, back.decided, back.same) == (False, False, 0)
    assert "there is nothing to compare with" in render_page(back)


def test_a_run_that_was_cut_off_decides_nothing() -> None:
    base = run(wrong("a.b"), case("a.c"))
    cut = run(wrong("a.b"), selected=2)
    assert not compare(base, cut).decided
    assert not compare(base, run(wrong("a.b"), case("a.c", E))).decided
    assert compare(base, base).decided


def test_a_bug_that_shows_by_chance_is_no_difference() -> None:
    passed, shown = run(case("a.b")), run(case("a.b", XF, bug="status-reads-freed-event"))
    assert not compare(passed, shown).changes
    assert not compare(shown, passed).changes


def test_another_known_bug_is_a_known_bug_that_came() -> None:
    base, new = (run(case("a.b", XF, bug=bug)) for bug in ("one", "one two"))
    assert [each.kind for each in compare(base, new).changes] == [Kind.BUG]
    assert [each.kind for each in compare(new, base).changes] == [Kind.OTHERWISE]


@pytest.mark.parametrize(
    ("base", "new", "suite", "changed", "expected"),
    [
        # The program ended early because the case failed.
        ("010203", "0102", "0.2.0", False, Kind.BROKEN),
        ("010203", "0103", "0.2.0", True, Kind.REWRITTEN),
        # The suite is the same: the answers of the kernel changed the program.
        ("010203", "0103", "0.1.0", False, Kind.BROKEN),
        # An older revision recorded no course.
        ("", "0103", "0.2.0", None, Kind.BROKEN),
    ],
)
def test_a_program_changed_by_the_suite_is_no_regression(
    base: str, new: str, suite: str, changed: bool | None, expected: Kind
) -> None:
    before = run(case("a.b", digest="aa", course=base))
    after = run(wrong("a.b", digest="bb", course=new), head=head(suite=suite))
    (found,) = compare(before, after).changes
    assert (found.kind, found.program_changed) == (expected, changed)
    assert compare(before, after).regression is (expected is Kind.BROKEN)


def test_answers_change_programs_of_one_suite() -> None:
    compared = compare(run(case("a.b", digest="aa")), run(wrong("a.b", digest="bb")))
    assert [*differences(replace(compared, programs_changed=1))] == [
        "programs differ in 1 case: they depend on the answers"
    ]


def test_evidence_begins_with_new_differences() -> None:
    """A known bug that comes first in the program is not new."""
    old, new_text = Mismatch(1, "errno", "0", "EPERM"), Mismatch(5, "errno", "0", "EIO")
    base = replace(wrong("a.b"), outcome=XF, mismatches=(old,))
    lines = evidence_of(wrong("a.b", mismatches=(old, new_text)), base)
    assert ("kernel", ("errno: EIO",)) in lines
    assert ("more", ("1 more difference in this case",)) in lines
