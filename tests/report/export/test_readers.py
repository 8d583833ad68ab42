"""No reader shows a run as better than it was."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from junitparser import xunit2
from msgspec.structs import replace
from tap.parser import Parser

from conformance.report.export import github
from conformance.report.export.junit import render_junit
from conformance.report.export.kcidb import Sender, render_kcidb
from conformance.report.export.kselftest import render_kselftest
from conformance.report.export.ktap import render_ktap
from conformance.report.export.tmt import render_tmt
from conformance.results.outcome import Blame, Level, Outcome, SkipReason
from conformance.results.run import RunRecord
from tests.report.conftest import Kunit
from tests.report.export.ktap_reader import read_ktap
from tests.report.export.lkft_reader import read_kselftest
from tests.report.samples import case, contradicted, evidence, head, run

GREEN, GREY, RED = "green", "grey", "red"
COLOURS = {
    **dict.fromkeys((Outcome.PASS, Outcome.XFAIL, Outcome.FIXED), GREEN),
    # Below the level that fails a run.
    **dict.fromkeys((Outcome.CHANGED, Outcome.NOTE), GREEN),
    **dict.fromkeys((Outcome.SKIP,), GREY),
}


def of(outcome: Outcome, blame: Blame = Blame.KERNEL) -> RunRecord:
    """A run with this outcome in one of three surfaces."""
    reason = SkipReason.CONFIG if outcome is Outcome.SKIP else "because # SKIP it"
    odd = case("write.b", outcome, blame=blame, reason=reason)
    return run(case("status.a"), case("write.a"), odd, case("perf.a"))


UNBUILT = case("write.z", Outcome.SKIP, reason=SkipReason.NOT_BUILT)
SELF_CHECK = run(case("write.a"), head=head(self_check=True))
RUNS = {
    **{outcome.value: (of(outcome), COLOURS.get(outcome, RED)) for outcome in Outcome},
    "SKIP": (of(Outcome.SKIP), GREEN),
    "model to blame": (of(Outcome.FAIL, Blame.MODEL), RED),
    "host to blame": (of(Outcome.ERROR, Blame.HOST), RED),
    "cut off": (run(case("write.a"), selected=3, note="interrupted"), RED),
    "cut off before the first case": (run(selected=3), RED),
    "nothing judged": (run(case("write.a", Outcome.SKIP)), RED),
    "no case": (run(), RED),
    "some guests without": (run(case("write.a"), UNBUILT), RED),
    "a strict run": (replace(of(Outcome.NOTE), head=head(fail_on=Level.DETAIL)), RED),
    "adapted": (run(case("write.a", adapted=("persist",))), GREEN),
    "contradicted": (contradicted(), RED),
    "not built": (run(UNBUILT, not_built=True), GREY),
    "not built, no case": (run(not_built=True), GREY),
    "self-check": (SELF_CHECK, GREEN),
    "self-check failed": (run(case("write.a", Outcome.FAIL), head=head(self_check=True)), RED),
}
each_run = pytest.mark.parametrize(("record", "colour"), RUNS.values(), ids=RUNS.keys())


def worst(colours: Iterable[str]) -> str:
    """The overall colour: red before green before grey."""
    found = set(colours)
    return RED if RED in found else GREEN if GREEN in found else GREY


def by_kunit(kunit: Kunit, records: list[RunRecord]) -> str:
    test = kunit(render_ktap(records))
    if test.counts.errors:
        return RED
    return {"SUCCESS": GREEN, "SKIPPED": GREY}.get(test.status.name, RED)


def by_tap(text: str) -> str:
    """Read TAP without nesting: only the outermost tests."""
    lines = [line for line in Parser().parse_text(text) if line.category == "test"]
    return worst(RED if not each.ok else GREY if each.skip else GREEN for each in lines)


def by_lkft(records: list[RunRecord]) -> str:
    colours = {"pass": GREEN, "skip": GREY, "fail": RED}
    return worst(colours[each] for each in read_kselftest(render_kselftest(records)).values())


def by_junit(records: list[RunRecord]) -> str:
    suites = xunit2.JUnitXml.fromstring(render_junit(records).encode())
    entries = [entry for suite in suites for entry in suite]
    return worst(GREY if each.is_skipped else GREEN if each.is_passed else RED for each in entries)


def by_kcidb(records: list[RunRecord]) -> str:
    tests = json.loads(render_kcidb(records, Sender("mine")))["tests"]
    wholes = [each["status"] for each in tests if each["path"] == "user_events"]
    return worst({"PASS": GREEN, "SKIP": GREY}.get(each, RED) for each in wholes)


def by_github(records: list[RunRecord]) -> str:
    text = "\n".join(github.annotate(records))
    return RED if "::error " in text else GREY if "::notice title=NOT_BUILT" in text else GREEN


def by_tmt(records: list[RunRecord]) -> str:
    """tmt's exit code is 0 for pass and info, and for skip only if something else passed."""
    colours = {"pass": GREEN, "info": GREEN, "skip": GREY}
    return worst(colours.get(each["result"], RED) for each in json.loads(render_tmt(records)))


def by_all(records: list[RunRecord]) -> dict[str, str]:
    return {
        "tap, ktap": by_tap(render_ktap(records)),
        "tap, kselftest": by_tap(render_kselftest(records)),
        "lkft": by_lkft(records),
        "junit": by_junit(records),
        "kcidb": by_kcidb(records),
        "github": by_github(records),
        "tmt": by_tmt(records),
    }


@each_run
def test_a_run_keeps_its_colour(record: RunRecord, colour: str) -> None:
    found = by_all([record])
    assert found == dict.fromkeys(found, colour)


@pytest.mark.parametrize("more", [[], [run(case("write.a"))]], ids=["alone", "with a run"])
def test_a_self_check_says_that_no_kernel_was_judged(more: list[RunRecord]) -> None:
    why = "a self-check of the suite: no kernel was judged"
    records = [SELF_CHECK, *more]
    (whole,) = (each for each in json.loads(render_tmt(records)) if why in each.get("note", ()))
    assert whole["result"] == "skip"
    runs = xunit2.JUnitXml.fromstring(render_junit(records).encode())
    (entry,) = (each for suite in runs for each in suite if each.is_skipped)
    assert (entry.name, entry.result[0].message) == ("uevt.run", why)
    ktap = read_ktap(render_ktap(records))
    found = [each for each in (ktap.subtests[0], *ktap.leaves()) if each.detail == why]
    assert {each.directive for each in found} == {"SKIP"}
    assert {each.name for each in found} == {"uevt.run", *(["6.12"] if more else [])}
    assert f"# 1..0 # SKIP {why}\n" in render_kselftest(records)


@each_run
def test_a_run_keeps_its_colour_in_kunit(kunit: Kunit, record: RunRecord, colour: str) -> None:
    assert by_kunit(kunit, [record]) == colour


@each_run
def test_a_bad_run_next_to_a_good_one_stays_bad(
    kunit: Kunit, record: RunRecord, colour: str
) -> None:
    good = run(case("write.a"))
    expected = RED if colour is RED else GREEN
    for records in ([good, record], [record, good]):
        found = {**by_all(records), "kunit": by_kunit(kunit, records)}
        if colour is GREY:
            del found["github"]  # which omits passed tests
        assert found == dict.fromkeys(found, expected)


def leaves(test: Any) -> dict[str, str]:
    if not test.subtests:
        return {test.name: test.status.name}
    return {name: found for each in test.subtests for name, found in leaves(each).items()}


HOSTILE = [
    *("ok 1 evil", "not ok 1 evil # SKIP", "x # SKIP y", "x #SKIP", "    # Subtest: evil"),
    *("KTAP version 1", "TAP version 12", "1..0 # SKIP", "Bail out! # SKIP"),
    *("# ok 7 evil", "  # # ok 7 evil"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_kernel_output_turns_nothing_green(kunit: Kunit, text: str) -> None:
    shown = {"reason": text, "evidence": evidence(text)}
    record = run(
        case("write.a"),
        case("write.b", Outcome.CRASH, **shown),
        case("write.c", Outcome.XFAIL, **shown),
        selected=5,
        note=text,
    )
    for records in ([record], [record, record]):
        found = {**by_all(records), "kunit": by_kunit(kunit, records)}
        assert found == dict.fromkeys(found, RED)
    assert read_kselftest(render_kselftest([record])) == {
        "user_events_write_write_a": "pass",
        "user_events_write_write_b": "fail",
        "user_events_write_write_c": "pass",
        "user_events_write": "fail",
        "user_events_uevt_run": "fail",
    }
    assert leaves(kunit(render_ktap([record]))) == {
        "write.a": "SUCCESS",
        "write.b": "FAILURE",
        "write.c": "SUCCESS",
        "uevt.run": "FAILURE",
    }


@pytest.mark.parametrize("last", [True, False])
def test_words_that_end_a_kunit_log_hide_no_failure(kunit: Kunit, last: bool) -> None:
    # kunit takes these anywhere in a line for the end of a boot.
    halted = case("write.b", Outcome.CRASH, evidence=evidence("[9.0] reboot: System halted\n"))
    cases = [case("write.a"), halted] if last else [halted, case("write.a")]
    assert by_kunit(kunit, [run(*cases)]) == RED
