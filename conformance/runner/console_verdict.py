"""What reports of the kernel on its console make of a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.results.case_result import (
    CASE_ID,
    Blame,
    CaseResult,
    Evidence,
    Mismatch,
    Outcome,
    Report,
)
from host.kernel_reports import CRASHES, ReportKind

_LATER = "afterwards"


def judge_reports(judged: CaseResult, reports: Sequence[Report], console: str) -> CaseResult:
    """The result of a case during which the kernel reported something.

    It cannot pass then; with a panic or an oops, even one that the kernel outlived, it is a CRASH.
    A guest without memory says nothing about its kernel.
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
    said = f"the kernel complained: {first}"
    if all(each.kind == ReportKind.OUT_OF_MEMORY for each in counted):
        # Whatever it answered then.
        outcome, blame = Outcome.ERROR, Blame.GUEST
        said = f"the guest has too little memory: {first}"
    elif any(each.kind in CRASHES for each in counted):
        outcome, said = Outcome.CRASH, f"the guest crashed: {first}"
    elif judged.outcome is Outcome.FAIL and judged.blame is Blame.KERNEL:
        said = judged.reason
    return replace(
        found,
        outcome=outcome,
        blame=blame,
        reason=said,
        mismatches=judged.mismatches + mismatches,
    )


def judge_late_reports(reports: Sequence[Report], case_id: str, console: str) -> list[CaseResult]:
    """What was reported before a case began, as results of the cases that had ended before."""
    results = []
    for case in dict.fromkeys(each.after for each in reports):
        late = [each for each in reports if each.after == case]
        place = case if CASE_ID.fullmatch(case) else f"{case_id.partition('.')[0]}.start"
        result = CaseResult(
            id=f"{place}.{_LATER}",
            surface=place.partition(".")[0],
            tier="quick",
            outcome=Outcome.PASS,
            evidence=Evidence(console=console),
        )
        told = judge_reports(result, late, console)
        seen = f"seen after {case or 'the start'} had ended and before {case_id} began"
        results.append(replace(told, reason=f"{told.reason}; {seen}" if told.reason else seen))
    return results
