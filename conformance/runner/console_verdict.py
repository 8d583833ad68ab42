"""Change results by kernel reports on the console."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from conformance.results.case_result import (
    AFTERWARDS,
    CASE_ID,
    CaseResult,
    Evidence,
    Mismatch,
    Report,
)
from conformance.results.outcome import Blame, Outcome
from conformance.runner.judgement import Judgement
from host.kernel_reports import CRASHES, ReportKind

# Stands for the next case where there is none.
_RUN = "run.end"


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


def judge_late_reports(
    reports: Sequence[Report], case_id: str, console: str, end: str = ""
) -> list[CaseResult]:
    """Results for reports that appeared before a case began, named after the case before it.

    ``end`` is what ended the time in which they appeared, "" for the beginning of the case.
    """
    results = []
    for case in dict.fromkeys(each.after for each in reports):
        late = [each for each in reports if each.after == case]
        judged = judge_reports(_afterwards(case, case_id, console), late, console)
        seen = f"seen after {case or 'the start'} ended and before {end or f'{case_id} began'}"
        results.append(
            replace(judged, reason=f"{judged.reason}; {seen}" if judged.reason else seen)
        )
    return results


def judge_lost_guest(found: Judgement, case: str) -> CaseResult:
    """The result for a guest that was lost after a case had ended; "" if there was none."""
    return replace(
        _afterwards(case, _RUN, found.console),
        outcome=found.outcome,
        blame=found.blame,
        reason=f"{found.reason}; seen after {case or 'the start'} ended",
        reports=found.reports,
    )


def _afterwards(case: str, case_id: str, console: str) -> CaseResult:
    """A result about what happened after a case, or before the one with an id."""
    place = case if CASE_ID.fullmatch(case) else f"{case_id.partition('.')[0]}.start"
    return CaseResult(
        id=f"{place}.{AFTERWARDS}",
        surface=place.partition(".")[0],
        tier="quick",
        outcome=Outcome.PASS,
        evidence=Evidence(console=console),
    )
