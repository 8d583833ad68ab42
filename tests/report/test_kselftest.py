"""The words of kselftest's runner, read as LKFT and LAVA read them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given

from conformance.outcome import Evidence, Outcome, SkipReason
from conformance.report.kselftest import render_kselftest
from conformance.report.record import RunRecord
from tests.report.lkft_reader import read_kselftest, slug
from tests.report.samples import UNHURRIED, case, contradicted, mixed, run, runs

SUMMARIES = Path(__file__).resolve().parents[2] / "docs" / "results"
RESULTS = {Outcome.PASS: "pass", Outcome.XFAIL: "pass", Outcome.SKIP: "skip"}


@UNHURRIED
@given(runs())
def test_a_reader_finds_each_case_and_nothing_else(record: RunRecord) -> None:
    names = Counter(slug(f"{each.surface} {each.id}") for each in record.cases)
    surfaces = {slug(each.surface) for each in record.cases}
    if max(names.values(), default=0) > 1 or len(surfaces) < len({c.surface for c in record.cases}):
        return  # a slug of two: the suite's own ids have none
    found = read_kselftest(render_kselftest([record]))
    told = {
        slug(f"user_events: {each.surface}") + f"_{slug(each.id)}": RESULTS.get(
            each.outcome, "fail"
        )
        for each in record.cases
    }
    assert told.items() <= found.items()
    others = {name: result for name, result in found.items() if name not in told}
    expected = {slug(f"user_events: {surface}") for surface in surfaces}
    assert set(others) == expected | ({"user_events_uevt_run"} if record.trouble else set())


def test_it_looks_as_agreed(golden: Callable[[str, str], None]) -> None:
    golden("mixed.kselftest", render_kselftest([mixed()]))


def test_names_are_the_ids_and_stay_the_same_when_skipped() -> None:
    found = read_kselftest(render_kselftest([mixed()]))
    assert found == {
        "user_events_registration_registration_empty_name": "pass",
        "user_events_registration_registration_size_short": "fail",
        "user_events_registration": "fail",
        "user_events_enable_enable_bit_63": "pass",
        "user_events_enable": "pass",
        "user_events_delete_delete_busy": "fail",
        "user_events_delete": "fail",
        "user_events_write_write_storm": "fail",
        "user_events_write": "fail",
        "user_events_status_status_text": "fail",
        "user_events_status": "fail",
        "user_events_format_format_array_length": "pass",
        "user_events_format": "pass",
        "user_events_layouts_layouts_compat": "skip",
        "user_events_layouts": "skip",
        "user_events_lifetime_lifetime_fork": "fail",
        "user_events_lifetime": "fail",
    }


def test_no_two_cases_of_the_suite_have_one_name_in_the_end() -> None:
    ids = {
        case for file in SUMMARIES.glob("*.json") for case in json.loads(file.read_text())["cases"]
    }
    assert len(ids) > 3000
    assert len({slug(id) for id in ids}) == len(ids)
    # Where names are cut to letters and digits, as in variables of a shell.
    assert len({re.sub("[^a-z0-9]+", "_", id) for id in ids}) == len(ids)


@pytest.mark.parametrize(
    "line",
    ["ok 7 evil", "not ok 7 evil # SKIP", "# ok 7 evil", "TAP version 12", "  # # ok 7 evil"],
)
def test_what_a_kernel_prints_is_no_result(line: str) -> None:
    crash = case("write.a", Outcome.CRASH, reason=line, evidence=evidence(line))
    skipped = case("write.b", Outcome.SKIP)
    assert read_kselftest(render_kselftest([run(crash, skipped)])) == {
        "user_events_write_write_a": "fail",
        "user_events_write_write_b": "skip",
        "user_events_write": "fail",
    }


def evidence(text: str) -> Evidence:
    return Evidence((text,), text, text, text, text)


def test_several_kernels_are_collections_of_their_own() -> None:
    text = render_kselftest([run(case("write.a")), run(case("write.a", Outcome.FAIL))])
    assert "# selftests: user_events/6.12: write\n" in text
    assert "not ok 2 selftests: user_events/6.12-2: write # exit=1\n" in text
    assert read_kselftest(text) == {
        "user_events_6_12_write_write_a": "pass",
        "user_events_6_12_write": "pass",
        "user_events_6_12-2_write_write_a": "fail",
        "user_events_6_12-2_write": "fail",
    }


def test_a_run_that_was_cut_off_is_a_program_that_failed() -> None:
    text = render_kselftest([run(case("write.a"), selected=2, note="interrupted")])
    assert text.startswith("TAP version 13\n1..2\n")
    assert text.endswith(
        "# selftests: user_events: uevt.run\n"
        "# Bail out! 1 of 2 cases ended: interrupted\n"
        "not ok 2 selftests: user_events: uevt.run # exit=1\n"
    )


def test_a_kernel_without_user_events_is_skipped() -> None:
    unbuilt = case("write.a", Outcome.SKIP, reason=SkipReason.NOT_BUILT)
    text = render_kselftest([run(unbuilt, not_built=True)])
    assert read_kselftest(text) == {"user_events_uevt_run": "skip"}
    assert "# 1..0 # SKIP the kernel was built without user_events\n" in text


def test_measured_switches_are_told() -> None:
    lines = render_kselftest([contradicted()]).splitlines()
    told = lines.index("# # | judged with measured switches: ebadf_when_disabled, persist")
    assert lines[told + 1] == "# ok 1 write.a"
