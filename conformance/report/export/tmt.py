"""Runs as custom results of tmt, the Test Management Tool of Fedora CI, RHEL and CKI.

A test with ``result: custom`` writes them to ``$TMT_TEST_DATA/results.yaml``; the schema is
tmt/schemas/results.yaml, the outcomes are those of "result" in tmt's specification of tests.  JSON
is YAML, and quotes every text.  tmt puts the name of its test before each name; ``/`` is the test
itself, here the run as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from conformance.report.export.ktap import remarks
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Outcome, RunVerdict
from conformance.results.run import RunHead, RunRecord, with_names
from conformance.results.verdict import verdict_line
from host.text import one_line

FILES = ("results.ktap", "report.html", "results.json", "junit.xml", "console.log")
"""Files of a run that tmt links from its report, the overview first."""

# Outcomes that have a result of their own; others are "fail" or "info".
_RESULTS = {
    Outcome.PASS: "pass",
    Outcome.FIXED: "pass",
    # As tmt itself shows a test with "result: xfail" that failed.
    Outcome.XFAIL: "pass",
    Outcome.SKIP: "skip",
    Outcome.ERROR: "error",
}
# "info" is a result that fails no plan, unlike "warn".
_WEAK = "info"
_WHOLE = {
    RunVerdict.PASS: "pass",
    RunVerdict.FAIL: "fail",
    RunVerdict.NOT_BUILT: "skip",
    RunVerdict.ERROR: "error",
}


def render_tmt(records: Iterable[RunRecord], files: str = "") -> str:
    """Runs as a document; with several each name begins with that of its kernel.

    ``files`` is the directory of a run's files below TMT_TEST_DATA, "" if they are elsewhere.
    """
    runs = with_names(records)
    found: list[dict[str, Any]] = []
    for name, record in runs:
        below = "/" + one_line(name).replace("/", "-") if len(runs) > 1 else ""
        place = f"{files}{below}" if files else ""
        found.append(_whole(record, below or "/", place))
        cases = () if record.not_built else record.cases
        found += [_case(case, f"{below}/{case.id}", record.head, place) for case in cases]
    return json.dumps(found, indent=1) + "\n"


def _whole(record: RunRecord, name: str, place: str) -> dict[str, Any]:
    trouble = record.judged_nothing or record.trouble
    notes = [verdict_line(record), *([trouble] if trouble else [])]
    passed = record.verdict is RunVerdict.PASS
    result = "skip" if passed and record.judged_nothing else _WHOLE[record.verdict]
    entry = _entry(name, result, record.duration_s, notes)
    if place:
        entry["log"] = [f"{place}/{file}" for file in FILES]
    return entry


def _case(case: CaseResult, name: str, head: RunHead, place: str) -> dict[str, Any]:
    fails = head.fails(case.outcome)
    result = _RESULTS.get(case.outcome, "fail" if fails else _WEAK)
    entry = _entry(name, result, case.duration_s, _notes(case, head))
    if fails and place:
        entry["log"] = [f"{place}/{FILES[0]}"]
    if case.outcome is Outcome.XFAIL:
        entry["original-result"] = "fail"
    return entry


def _notes(case: CaseResult, head: RunHead) -> list[str]:
    """What tmt shows beside a result, on one line: the evidence is in the log."""
    if case.outcome is Outcome.SKIP:
        return [case.explanation]
    if head.fails(case.outcome):
        again = head.command_for(case)
        return [f"{case.outcome}: {case.difference}", *([f"rerun: {again}"] if again else [])]
    known = [case.reason] if case.outcome is Outcome.XFAIL and case.reason else []
    return known + remarks(case)


def _entry(name: str, result: str, seconds: float, notes: list[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "result": result, "duration": _duration(seconds)}
    if notes:
        entry["note"] = [one_line(note) for note in notes]
    return entry


def _duration(seconds: float) -> str:
    """Hours, minutes and seconds: tmt has no fractions."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"
