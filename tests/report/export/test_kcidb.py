"""KCIDB documents, validated by kcidb-io."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kcidb_io.schema import V5_3
from msgspec.structs import replace

from conformance.report.export.kcidb import Sender, Status, render_kcidb, status_of
from conformance.results.case_result import Evidence
from conformance.results.outcome import Blame, Level, Outcome, SkipReason
from conformance.results.run import KernelFacts, PatchFacts, RunRecord
from tests.report.samples import UNHURRIED, case, contradicted, head, mixed, run, runs, wrong

SENDER = Sender("mine")


def document(*records: RunRecord, sender: Sender = SENDER) -> Any:
    """The document, valid and complete."""
    data = json.loads(render_kcidb(records, sender))
    V5_3.validate_exactly(data)
    for kind, parent in (("builds", "checkouts"), ("tests", "builds"), ("incidents", "tests")):
        ids = [each["id"] for each in data.get(kind, [])]
        assert len(set(ids)) == len(ids)
        parents = {each["id"] for each in data.get(parent, [])} or {sender.build}
        assert {each[f"{parent.removesuffix('s')}_id"] for each in data.get(kind, [])} <= parents
    return data


def statuses(data: Any) -> dict[str, str]:
    return {each["path"].removeprefix("user_events."): each["status"] for each in data["tests"]}


@UNHURRIED
@given(st.lists(runs(), min_size=1, max_size=2, unique_by=lambda each: repr(each.cases)))
def test_any_runs_are_valid(records: list[RunRecord]) -> None:
    data = document(*records, sender=replace(SENDER, files="https://ci.example.com/x"))
    assert len(data["tests"]) == sum(len(each.cases) + 1 for each in records)


@pytest.mark.parametrize(
    ("outcome", "blame", "status"),
    [
        (Outcome.FAIL, Blame.MODEL, Status.ERROR),
        (Outcome.FAIL, Blame.MODULE, Status.FAIL),
        (Outcome.ERROR, Blame.CASE, Status.ERROR),
        (Outcome.ERROR, Blame.HARNESS, Status.ERROR),
        (Outcome.ERROR, Blame.KERNEL, Status.ERROR),
        (Outcome.ERROR, Blame.HOST, Status.MISS),
        (Outcome.ERROR, Blame.GUEST, Status.MISS),
    ],
)
def test_blame_decides_the_status(outcome: Outcome, blame: Blame, status: Status) -> None:
    assert status_of(case("write.a", outcome, blame=blame), head()) is status


@pytest.mark.parametrize(
    ("outcome", "line", "status"),
    [
        (Outcome.CHANGED, Level.CONTRACT, "PASS"),
        (Outcome.CHANGED, Level.BEHAVIOUR, "FAIL"),
        (Outcome.NOTE, Level.BEHAVIOUR, "PASS"),
        (Outcome.NOTE, Level.DETAIL, "FAIL"),
    ],
)
def test_the_line_of_the_run_decides_the_status(outcome: Outcome, line: Level, status: str) -> None:
    data = document(run(wrong("a.b", outcome=outcome), head=head(fail_on=line)))
    assert statuses(data) == {"user_events": status, "a.b": status}
    whole, test = data["tests"]
    assert whole["misc"]["uevt"]["fail_on"] == line
    assert test["comment"] == f"{outcome} (contract): step 2, errno: allowed EINVAL, observed 0"
    assert (test["misc"]["uevt"]["level"], test["misc"]["uevt"]["outcome"]) == ("contract", outcome)


def test_a_known_bug_is_a_present_issue() -> None:
    texts = {"reason": "the length is garbage", "bug": "format-array-length"}
    known = case("format.length", Outcome.XFAIL, **texts)
    data = document(run(case("write.a"), known))
    assert statuses(data) == {"user_events": "PASS", "write.a": "PASS", "format.length": "FAIL"}
    (incident,) = data["incidents"]
    assert (incident["present"], incident["comment"]) == (True, "the length is garbage")
    (issue,) = data["issues"]
    assert incident["issue_id"] == issue["id"] == "mine:user_events.format-array-length"
    assert issue["comment"].startswith("a known bug of the kernel: `format` ")
    assert data["tests"][-1]["misc"]["uevt"]["bug"] == "format-array-length"
    assert issue["culprit"] == {"code": True, "tool": False, "harness": False}


def test_a_fixed_bug_is_an_absent_issue() -> None:
    gone = case("format.length", Outcome.FIXED, bug="one two")
    data = document(run(case("write.a"), gone))
    assert statuses(data)["format.length"] == statuses(data)["user_events"] == "PASS"
    assert [each["present"] for each in data["incidents"]] == [False, False]
    issues = [each["id"] for each in data["issues"]]
    assert issues == ["mine:user_events.one", "mine:user_events.two"]


def test_two_kernels_with_one_bug_have_one_issue() -> None:
    known = case("format.length", Outcome.XFAIL, bug="one")
    other = head(kernel=KernelFacts("6.1", "6.1.192", "6.1", config_sha256="0" * 64))
    data = document(run(known), run(known, head=other))
    assert [len(data[kind]) for kind in ("issues", "incidents", "builds")] == [1, 2, 2]


@pytest.mark.parametrize(
    ("record", "status"),
    [
        (run(case("write.a"), selected=2, note="interrupted"), "MISS"),
        (run(selected=3), "MISS"),
        (run(case("write.a", Outcome.FAIL), selected=2), "FAIL"),
        (run(case("write.a", adapted=("persist",))), "PASS"),
        (contradicted(), "FAIL"),
        (run(case("write.a", Outcome.SKIP)), "MISS"),
        (run(not_built=True), "SKIP"),
        (run(case("write.a"), case("write.b", Outcome.SKIP)), "PASS"),
    ],
)
def test_the_run_as_a_whole_is_a_test(record: RunRecord, status: str) -> None:
    (whole,) = [each for each in document(record)["tests"] if each["path"] == "user_events"]
    assert whole["status"] == status
    assert whole.get("log_excerpt", "") == record.trouble
    assert (whole["start_time"], whole["duration"]) == ("2026-11-20T17:44:00Z", 14.23)


def test_a_kernel_without_user_events_has_no_cases() -> None:
    unbuilt = case("write.a", Outcome.SKIP, reason=SkipReason.NOT_BUILT)
    assert statuses(document(run(unbuilt, not_built=True))) == {"user_events": "SKIP"}


def test_ids_are_stable_and_unique() -> None:
    first, other = mixed(), replace(mixed(), duration_s=15.0)
    assert render_kcidb([first], SENDER) == render_kcidb([mixed()], SENDER)
    both = document(first, other)
    assert len(both["tests"]) == 24
    # The same sources with the same configuration are one build.
    assert len(both["builds"]) == 1


@pytest.mark.parametrize("kernel", ["6.12+fix", "tree-6.13", "image-6.12"])
def test_the_source_of_a_kernel_may_be_unknown(kernel: str) -> None:
    facts = replace(mixed().head.kernel, id=kernel)
    first = run(case("write.a"), head=head(kernel=facts))
    assert len(document(first, replace(first, duration_s=2.0))["builds"]) == 2


def test_a_known_build_is_not_repeated() -> None:
    data = document(mixed(), sender=replace(SENDER, build="maestro:6565c0ffee"))
    assert not {"builds", "checkouts"} & data.keys()
    assert {each["build_id"] for each in data["tests"]} == {"maestro:6565c0ffee"}


def test_files_of_several_runs_are_in_directories_of_their_kernels() -> None:
    facts = replace(mixed().head.kernel, id="6.12+a b")
    sender = replace(SENDER, files="https://ci.example.com/77/")
    data = document(mixed(), run(case("write.a"), head=head(kernel=facts)), sender=sender)
    wholes = [each for each in data["tests"] if each["path"] == "user_events"]
    assert [each["log_url"] for each in wholes] == [
        "https://ci.example.com/77/6.12/results.ktap",
        "https://ci.example.com/77/6.12%2Ba%20b/results.ktap",
    ]
    assert wholes[0]["output_files"][0] == {
        "name": "results.json",
        "url": "https://ci.example.com/77/6.12/results.json",
    }


def test_evidence_is_bounded() -> None:
    console = "".join(f"[{second:5}.0] {'x' * 900}\n" for second in range(60))
    crash = case("write.a", Outcome.CRASH, evidence=Evidence(console=console))
    *_, test = document(run(crash))["tests"]
    shown = test["misc"]["uevt"]["evidence"]["console"]
    assert len(shown) <= 16384
    assert "characters left out; results.json has them" in shown
    assert shown.startswith("[    0.0]")
    assert len(test["log_excerpt"]) <= 16384
    assert test["log_excerpt"].startswith("CRASH write.a (0.00 s)\n")


def test_characters_that_the_database_refuses_are_escaped_everywhere() -> None:
    odd = "a\0b\udcff"
    patched = replace(head().kernel, patches=(PatchFacts(odd, "0" * 64, odd),))
    record = run(wrong("write.a", odd, adapted=(odd,)), head=replace(head(), kernel=patched))
    text = render_kcidb([record], SENDER)
    assert text.count(r"a\\x00b\\udcff") >= 4
    # Escapes of JSON: a backslash before u that none escapes.
    assert re.findall(r"(?<!\\)(?:\\\\)*(\\u(?:0000|d[89a-f]))", text) == []
