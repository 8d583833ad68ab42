"""Runs in the format of `run_kselftest.sh`: each surface is a program of user_events.

tools/testing/selftests/kselftest/runner.sh names each program, prefixes its output with "# ", and
judges it by its exit code; the output is TAP again, as of kselftest.h.  Readers (LAVA, LKFT,
openQA, NIPA) take each comment for nested TAP, and text after SKIP for a part of the name: so
evidence follows a "|", and result lines have no reasons.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from conformance.report.export.ktap import RUN_ID, by_surface, head_lines, remarks
from conformance.report.failure import render_failure
from conformance.results.case_result import CaseResult
from conformance.results.outcome import DEVIATIONS, Outcome
from conformance.results.run import RunHead, RunRecord, with_names
from host.text import one_line

VERSION = "TAP version 13"
COLLECTION = "user_events"

# The words of kselftest.h's last line.
_TOTALS = ("pass", "fail", "xfail", "xpass", "skip", "error")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+~@-]+")
_FAILED = "exit=1"


class _Program(Struct, frozen=True):
    """A program with its output, and the text after "#" of its result line."""

    name: str
    output: Sequence[str]
    ended: str = ""


def render_kselftest(records: Iterable[RunRecord]) -> str:
    """Render runs.

    Several runs are collections of their own, named by their kernels.
    """
    runs = with_names(records)
    lines: list[str] = []
    planned = 0
    for name, record in runs:
        below = f"/{_NOT_IN_NAMES.sub('-', name)}" if len(runs) > 1 else ""
        lines += head_lines(record.head)
        for program in _programs(record):
            planned += 1
            header = f"selftests: {COLLECTION}{below}: {program.name}"
            lines += [f"# {header}", *(f"# {line}" for line in program.output)]
            word = "not ok" if program.ended == _FAILED else "ok"
            ended = f" # {program.ended}" if program.ended else ""
            lines.append(f"{word} {planned} {header}{ended}")
    return "\n".join([VERSION, f"1..{planned}", *lines]) + "\n"


def _programs(record: RunRecord) -> Iterator[_Program]:
    for surface, cases in by_surface(record).items():
        outcomes = {case.outcome for case in cases}
        bad = any(map(record.head.fails, outcomes))
        ended = _FAILED if bad else "SKIP" if outcomes == {Outcome.SKIP} else ""
        yield _Program(surface, list(_output(cases, record.head)), ended)
    if why := one_line(record.judged_nothing):
        skipped = f"1..0 # SKIP {why}"
        yield _Program(RUN_ID, [VERSION, skipped], "SKIP")
    elif record.trouble:
        yield _Program(RUN_ID, [f"Bail out! {one_line(record.trouble)}"], _FAILED)


def _output(cases: Sequence[CaseResult], head: RunHead) -> Iterator[str]:
    """The output of kselftest.h for these cases."""
    yield VERSION
    yield f"1..{len(cases)}"
    for number, case in enumerate(cases, start=1):
        for line in _evidence(case, head):
            yield f"# | {line}"
        word = "not ok" if head.fails(case.outcome) else "ok"
        plain = case.outcome in DEVIATIONS | {Outcome.PASS, Outcome.FIXED}
        yield f"{word} {number} {case.id}" + ("" if plain else f" # {case.outcome}")
    numbers = Counter(_counted_as(case, head) for case in cases)
    yield f"# Totals: {' '.join(f'{word}:{numbers[word]}' for word in _TOTALS)}"


def _counted_as(case: CaseResult, head: RunHead) -> str:
    """The word of the last line that counts a case."""
    if case.outcome in {Outcome.XFAIL, Outcome.SKIP, Outcome.ERROR}:
        return case.outcome.lower()
    return "fail" if head.fails(case.outcome) else "pass"


def _evidence(case: CaseResult, head: RunHead) -> list[str]:
    if head.fails(case.outcome):
        return render_failure(case, head)
    explained = case.reason and case.outcome in {Outcome.XFAIL, Outcome.SKIP}
    return ([one_line(case.explanation)] if explained else []) + remarks(case)
