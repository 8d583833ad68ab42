"""Change results by kernel reports on the console."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.results.case_result import (
    AFTERWARDS,
    CASE_ID,
    CaseResult,
    Evidence,
    Mismatch,
    Report,
)
from conformance.results.outcome import Blame, Outcome
from host.kernel_reports import CRASHES, ReportKind


def judge_reports(judged: CaseResult, reports: Sequence[Report], console: str) -> CaseResult:
    """The result of a case during which the kernel reported something.

    It is a FAIL; with a panic or an oops, even a survived one, a CRASH.  Reports about too little
    memory make it an ERROR of the guest.
    """
    if not reports:
        return judged
    found = replace(
        judged, reports=tuple(reports), evidence=replace(judged.evidence, console=console)
    )
    counted = [each for each in reports if not each.allowed]
    if not counted:
        return found
    first = counted[0]
    mismatches = tuple(Mismatch(0, "console", "no complaint", str(each)) for each in counted)
    outcome, blame = Outcome.FAIL, Blame.KERNEL
    reason = f"the kernel complained: {first}"
    if all(each.kind == ReportKind.OUT_OF_MEMORY for each in counted):
        # Without memory no answer counts.
        outcome, blame = Outcome.ERROR, Blame.GUEST
        reason = f"the guest has too little memory: {first}"
    elif any(each.kind in CRASHES for each in counted):
        outcome, reason = Outcome.CRASH, f"the guest crashed: {first}"
    elif judged.outcome is Outcome.FAIL and judged.blame is Blame.KERNEL:
        reason = judged.reason
    return replace(
        found,
        outcome=outcome,
        blame=blame,
        reason=reason,
        mismatches=judged.mismatches + mismatches,
    )


def judge_late_reports(reports: Sequence[Report], case_id: str, console: str) -> list[CaseResult]:
    """Results for reports that appeared before a case began, named after the case before it."""
    results = []
    for case in dict.fromkeys(each.after for each in reports):
        late = [each for each in reports if each.after == case]
        place = case if CASE_ID.fullmatch(case) else f"{case_id.partition('.')[0]}.start"
        result = CaseResult(
            id=f"{place}.{AFTERWARDS}",
            surface=place.partition(".")[0],
            tier="quick",
            outcome=Outcome.PASS,
            evidence=Evidence(console=console),
        )
        judged = judge_reports(result, late, console)
        seen = f"seen after {case or 'the start'} ended and before {case_id} began"
        results.append(
            replace(judged, reason=f"{judged.reason}; {seen}" if judged.reason else seen)
        )
    return results
