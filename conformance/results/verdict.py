"""The result of a run, or of a case, on one line."""

from __future__ import annotations

from conformance.results.case_result import CaseResult
from conformance.results.outcome import Level, Outcome, RunVerdict
from conformance.results.run import RunRecord, self_check_of
from host.text import coloured, counted, one_line

_COLOURS = {
    RunVerdict.PASS: "good",
    RunVerdict.FAIL: "bad",
    RunVerdict.NOT_BUILT: "notable",
    RunVerdict.ERROR: "bad",
}


def case_line(case: CaseResult) -> str:
    """The result of a case on one line of any length."""
    return f"{case.outcome} {case.id}" + (f": {one_line(case.reason)}" if case.reason else "")


def verdict_line(record: RunRecord, *, colour: bool = False) -> str:
    """The result of a run on one line."""
    kernel = record.head.kernel
    if record.head.self_check:
        ok = self_check_of(record)
        ended = coloured(f"self-check {ok}", "good" if ok == "ok" else "bad", enabled=colour)
        cases = counted(len(record.cases), "case")
        if ok != "ok":
            wrong = sum(case.outcome is not Outcome.PASS for case in record.cases)
            cases = f"{wrong} of {cases}" if wrong else one_line(record.trouble)
        return f"uevt: {one_line(kernel.id)} (profile {one_line(kernel.profile)}) {ended}: {cases}"
    verdict = record.verdict
    word = coloured(verdict.value, _COLOURS[verdict], enabled=colour)
    release = f" ({one_line(kernel.release)})" if kernel.release else ""
    return f"uevt: {one_line(kernel.id)}{release} {word}: {_counts(record)}"


def _counts(record: RunRecord) -> str:
    time = f"in {record.duration_s:.1f} s"
    if record.not_built:
        return f"{one_line(record.not_built_reason)} {time}"
    line = record.head.fail_on
    weak = record.count(Outcome.CHANGED, Outcome.NOTE) and line is not Level.CONTRACT
    notes = [record.share, f"--fail-on {line}" if weak else ""]
    shown = f" ({'; '.join(filter(None, notes))})" if any(notes) else ""
    return f"{', '.join(record.counts)}{shown} {time}"
