"""Results of cases during or after which the kernel reported something."""

from __future__ import annotations

import json

import pytest

from conformance.results.case_result import CaseResult, Evidence, Mismatch, Report
from conformance.results.outcome import Blame, Outcome
from conformance.runner.console_verdict import judge_late_reports, judge_reports
from tests.report.samples import case

WARN = Report("warn", "WARNING: CPU: 0 PID: 1 at x.c:1 f", "warn:f")
OOPS = Report("oops", "BUG: kernel NULL pointer dereference, address: 10", "oops:g")
MEMORY = Report("out_of_memory", "sh invoked oom-killer: gfp_mask=0", "out_of_memory")
ALLOWED = Report("warn", "WARNING: known", "warn:k", allowed="known [url] until 2030-01-01")


def result(outcome: Outcome = Outcome.PASS, blame: Blame = Blame.NONE) -> CaseResult:
    wrong = (Mismatch(1, "errno", "0", "EBADF"),) if outcome is Outcome.FAIL else ()
    evidence = Evidence(docs="what the documentation says")
    facts = {"reason": "".join(map(str, wrong)), "mismatches": wrong, "evidence": evidence}
    return case("write.x", outcome, blame=blame, **facts)


@pytest.mark.parametrize(
    ("judged", "reports", "outcome", "blame", "reason"),
    [
        (result(), [WARN], Outcome.FAIL, Blame.KERNEL, f"the kernel complained: {WARN.title}"),
        (result(), [WARN, OOPS], Outcome.CRASH, Blame.KERNEL, "the guest crashed: WARNING"),
        (result(), [MEMORY], Outcome.ERROR, Blame.GUEST, "the guest has too little memory"),
        (result(), [MEMORY, WARN], Outcome.FAIL, Blame.KERNEL, "the kernel complained: sh"),
        (result(), [ALLOWED], Outcome.PASS, Blame.NONE, ""),
        (result(), [ALLOWED, WARN], Outcome.FAIL, Blame.KERNEL, "the kernel complained: WARNING"),
        # The wrong answer is the better reason.
        (result(Outcome.FAIL, Blame.KERNEL), [WARN], Outcome.FAIL, Blame.KERNEL, "step 1, errno"),
        (result(Outcome.FAIL, Blame.KERNEL), [OOPS], Outcome.CRASH, Blame.KERNEL, "the guest cra"),
        # Without memory no answer counts.
        (result(Outcome.FAIL, Blame.KERNEL), [MEMORY], Outcome.ERROR, Blame.GUEST, "the guest has"),
        # A report fails the kernel, whatever else is at fault.
        (result(Outcome.ERROR, Blame.CASE), [WARN], Outcome.FAIL, Blame.KERNEL, "the kernel comp"),
    ],
)
def test_outcome_of_a_case_with_reports(
    judged: CaseResult, reports: list[Report], outcome: Outcome, blame: Blame, reason: str
) -> None:
    found = judge_reports(judged, reports, "the console")
    assert (found.outcome, found.blame) == (outcome, blame)
    assert found.reason.startswith(reason)
    assert found.reports == tuple(reports)
    assert found.evidence == Evidence(docs="what the documentation says", console="the console")
    console_lines = [each.observed for each in found.mismatches if each.field == "console"]
    assert console_lines == [str(each) for each in reports if not each.allowed]
    assert CaseResult.from_json(found.to_json()) == found


def test_result_without_reports_is_unchanged() -> None:
    assert judge_reports(result(), [], "the console") == result()


def test_report_before_any_case_gets_a_result() -> None:
    loaded = Report("warn", "WARNING: late", "warn:h", after="module x load: done")
    (late,) = judge_late_reports([loaded], "write.second", "")
    assert late.id == "write.start.afterwards"


def test_a_report_of_a_newer_writer_is_read() -> None:
    newer = json.loads(json.dumps(judge_reports(result(), [WARN], "").to_json()))
    newer["reports"][0] |= {"kind": "of_a_later_version", "new": 1}
    assert CaseResult.from_json(newer).reports[0].kind == "of_a_later_version"
