"""Results: validation, second runs, and the verdict of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from conformance.results.case_result import CaseResult, Mismatch, Which
from conformance.results.contradiction import abi_with
from conformance.results.json_codec import SchemaError
from conformance.results.judging import lost_guest, settle, timed_out, verdict_of
from conformance.results.outcome import OUTCOME_OF, Blame, Level, Outcome, RunVerdict, SkipReason
from tests.report.samples import UNHURRIED, case, contradiction, failure, results

ID = "write.short"


@UNHURRIED
@given(results())
def test_a_result_survives_json(result: CaseResult) -> None:
    assert CaseResult.from_json(json.loads(json.dumps(result.to_json()))) == result


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("outcome", "PASSED", "case.outcome: invalid enum value 'PASSED'"),
        ("outcome", ["PASS"], "case.outcome: expected `str`, got `array`"),
        ("duration_s", "soon", "case.duration_s: expected `float`, got `str`"),
        ("duration_s", True, "case.duration_s: expected `float`, got `bool`"),
        ("duration_s", -1, "case: case registration.size_short: -1.0 is not a duration"),
        ("adapted", "x", "case.adapted: expected `array`, got `str`"),
        ("adapted", [1], "case.adapted[0]: expected `str`, got `int`"),
        ("mismatches", [{"step": 1}], "case.mismatches[0]: object missing required field `field`"),
        ("evidence", None, "case.evidence: expected `object`, got `null`"),
        ("rerun", {"outcome": "PASS"}, "case.rerun: object missing required field `blame`"),
        ("id", "Registration.Short", "case: 'Registration.Short' is not a case id"),
        ("id", "a.b - at `$x`", "case: 'a.b - at `$x`' is not a case id"),
        ("surface", "write", "case: case registration.size_short does not belong to"),
        ("outcome", "\ud800", "case: 'utf-8' codec can't encode character '\\ud800'"),
        ("\ud800", "", "case: 'utf-8' codec can't encode character '\\ud800'"),
        ("outcome", "x" * 1000, f"case.outcome: invalid enum value '{'x' * 179}…"),
    ],
)
def test_an_invalid_entry_is_refused_with_its_place(key: str, value: object, message: str) -> None:
    entry: dict[str, Any] = failure().to_json() | {key: value}
    with pytest.raises(SchemaError) as caught:
        CaseResult.from_json(entry)
    assert str(caught.value).startswith(message)


def test_results_without_later_keys_load() -> None:
    entry = case(ID, Outcome.FAIL).to_json()
    for key in ("file", "line", "sentence", "reports", "course"):
        del entry[key]
    del entry["evidence"]["spec"]
    assert CaseResult.from_json(entry) == case(ID, Outcome.FAIL)


def test_a_skip_needs_a_reason_code() -> None:
    assert case(ID, Outcome.SKIP, reason=SkipReason.CONFIG).reason == "config"
    with pytest.raises(ValueError, match="SKIP needs one of not_built, config"):
        case(ID, Outcome.SKIP, reason="no time")


def test_long_sides_are_cut_around_the_difference() -> None:
    same = "n" * 511
    line = str(Mismatch(3, "data", f"e1{same}.5", f"e1{same}.15"))
    assert line == f"step 3, data: allowed …{'n' * 39}.5, observed …{'n' * 39}.15"
    assert len(str(Mismatch(3, "data", "08 " * 257, "00 " * 257))) < 400


@pytest.mark.parametrize("case_id", ["write", "write.", ".short", "write.a b", "write.Ä", "w..s"])
def test_an_id_has_a_surface_and_a_name(case_id: str) -> None:
    with pytest.raises(ValueError, match="is not a case id"):
        case(case_id)


@pytest.mark.parametrize(
    ("first", "blame", "again"),
    [
        (Outcome.PASS, Blame.NONE, False),
        (Outcome.FAIL, Blame.KERNEL, False),
        (Outcome.XFAIL, Blame.KERNEL, False),
        (Outcome.ERROR, Blame.CASE, False),
        (Outcome.ERROR, Blame.MODEL, False),
        (Outcome.ERROR, Blame.HOST, True),
        (Outcome.ERROR, Blame.GUEST, True),
        (Outcome.CRASH, Blame.KERNEL, True),
        (Outcome.TIMEOUT, Blame.KERNEL, True),
    ],
)
def test_lost_guests_require_a_second_run(first: Outcome, blame: Blame, again: bool) -> None:
    assert lost_guest(case(ID, first, blame=blame)) is again


@pytest.mark.parametrize("second", [Outcome.PASS, Outcome.FAIL, Outcome.CRASH, Outcome.ERROR])
@pytest.mark.parametrize("first", [Outcome.CRASH, Outcome.TIMEOUT])
def test_a_crash_or_timeout_is_final(first: Outcome, second: Outcome) -> None:
    settled = settle(case(ID, first, reason="first"), case(ID, second, reason="second"))
    assert (settled.outcome, settled.reason) == (first, "first")
    assert settled.rerun is not None
    assert (settled.rerun.outcome, settled.rerun.of) == (second, Which.SECOND)


@pytest.mark.parametrize("second", [Outcome.PASS, Outcome.FAIL, Outcome.CRASH, Outcome.ERROR])
def test_after_a_host_failure_the_second_run_is_final(second: Outcome) -> None:
    settled = settle(case(ID, Outcome.ERROR, reason="signal 9"), case(ID, second))
    assert settled.outcome is second
    assert settled.rerun is not None
    assert (settled.rerun.outcome, settled.rerun.reason) == (Outcome.ERROR, "signal 9")
    assert settled.rerun.of is Which.FIRST


def test_settling_other_results_is_an_error() -> None:
    with pytest.raises(ValueError, match="stands alone"):
        settle(case(ID, Outcome.FAIL), case(ID))
    with pytest.raises(ValueError, match="cannot be settled"):
        settle(case(ID, Outcome.CRASH), case("write.long"))


def test_a_timeout_is_the_kernels_only_if_the_guest_answered_before() -> None:
    assert timed_out(answered_before=True) == (Outcome.TIMEOUT, Blame.KERNEL)
    assert timed_out(answered_before=False) == (Outcome.ERROR, Blame.GUEST)


NOT_BUILT = case("write.b", Outcome.SKIP, reason=SkipReason.NOT_BUILT)
NOT_HERE = case("write.c", Outcome.SKIP, reason=SkipReason.RUNNING_KERNEL)
A = case("write.a")


@pytest.mark.parametrize(
    ("cases", "verdict"),
    [
        ([A, case("w.b", Outcome.XFAIL)], "PASS"),
        ([A, case("w.b", Outcome.SKIP)], "PASS"),
        ([A, case("w.b", Outcome.FAIL)], "FAIL"),
        ([A, case("w.b", Outcome.FIXED)], "PASS"),
        ([A, case("w.b", Outcome.CHANGED), case("w.c", Outcome.NOTE)], "PASS"),
        ([A, case("w.b", Outcome.CRASH)], "FAIL"),
        ([A, case("w.b", Outcome.TIMEOUT)], "FAIL"),
        ([case("w.a", adapted=("nonspaced_match",))], "PASS"),
        ([A, case("w.b", Outcome.ERROR)], "ERROR"),
        ([case("w.a", Outcome.FAIL), case("w.b", Outcome.ERROR)], "FAIL"),
        ([case("w.a", Outcome.CHANGED), case("w.b", Outcome.ERROR)], "ERROR"),
        ([case("w.a", Outcome.SKIP)], "ERROR"),
        ([], "ERROR"),
        ([NOT_BUILT], "NOT_BUILT"),
        ([NOT_BUILT, NOT_HERE], "NOT_BUILT"),
        ([NOT_HERE], "ERROR"),
        # One guest of several has no user_events.
        ([A, NOT_BUILT], "ERROR"),
    ],
)
def test_the_verdict_of_a_run(cases: list[CaseResult], verdict: str) -> None:
    assert verdict_of(cases) == RunVerdict(verdict)


@pytest.mark.parametrize(
    ("line", "failed"),
    [
        (Level.CONTRACT, {Outcome.FAIL}),
        (Level.BEHAVIOUR, {Outcome.FAIL, Outcome.CHANGED}),
        (Level.DETAIL, {Outcome.FAIL, Outcome.CHANGED, Outcome.NOTE}),
    ],
)
def test_the_line_decides_which_deviations_fail_a_run(line: Level, failed: set[Outcome]) -> None:
    for outcome in OUTCOME_OF.values():
        expected = RunVerdict.FAIL if outcome in failed else RunVerdict.PASS
        assert verdict_of([A, case("w.b", outcome)], fail_on=line) is expected
        assert verdict_of([A], [contradiction(outcome=outcome)], line) is expected
    assert verdict_of([A, case("w.b", Outcome.CRASH)], fail_on=line) is RunVerdict.FAIL


def test_a_level_is_limited() -> None:
    assert Level.CONTRACT.at_most(Level.BEHAVIOUR) is Level.BEHAVIOUR
    assert Level.DETAIL.at_most(Level.BEHAVIOUR) is Level.DETAIL


@pytest.mark.parametrize(
    ("profile", "abi"),
    [
        ("6.1.192", "6.1.192,ebadf_when_disabled=no,persist=yes"),
        ("6.8,auto_delete=no", "6.8,auto_delete=no,ebadf_when_disabled=no,persist=yes"),
        ("6.8, persist=no", "6.8,ebadf_when_disabled=no,persist=yes"),
    ],
)
def test_the_abi_without_contradictions(profile: str, abi: str) -> None:
    found = [contradiction(), contradiction("persist", measured=True)]
    assert abi_with(profile, found) == abi
