"""`uevt selftests`: the output of upstream's programs, and what counts as a disagreement."""

from __future__ import annotations

import json
import os
import re
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, cast

import pytest
from msgspec.structs import replace

from conformance.cases.discovery import all_cases
from conformance.cli import selftests
from conformance.cli.selftests import Row, _results
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Level, Outcome
from conformance.results.results_json import NAME, write_results
from conformance.session.selftests import run
from conformance.session.selftests.counterparts import COUNTERPARTS, EXPLANATIONS
from conformance.session.selftests.ktap import Result, Selftest, read_selftests
from conformance.session.selftests.programs import compile_selftests
from conformance.session.selftests.run import Ran
from conformance.session.target.target import Target
from host.deadline import Deadline
from kernels.errors import HostTrouble, UserMistake
from kernels.store.built_kernel import BuiltKernel
from tests.conftest import Uevt
from tests.report.samples import mixed
from tests.report.samples import run as sample
from vm.errors import GuestCrashed
from vm.shell.relay import TimedOut

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = """\
TAP version 13
1..3
# Starting 3 tests from 1 test cases.
#  RUN           user.basic_types ...
# /linux/dyn_test.c:215:basic_types:Expected -1 (-1) != parse(&self->check, "u:a u32 a") (-1)
# basic_types: Test terminated by assertion
#          FAIL  user.basic_types
not ok 1 user.basic_types
#  RUN           user.loc_types ...
#            OK  user.loc_types
ok 2 user.loc_types
#  RUN           user.matching ...
"""


def test_output_of_a_program() -> None:
    basic, loc, matching = read_selftests("dyn_test", OUTPUT)
    assert (basic.id, basic.result) == ("dyn.basic_types", Result.NOT_OK)
    assert basic.why == (
        'dyn_test.c:215: Expected -1 (-1) != parse(&self->check, "u:a u32 a") (-1)',
    )
    assert (loc.id, loc.result, loc.why) == ("dyn.loc_types", Result.OK, ())
    assert matching.result is Result.NONE


@pytest.mark.parametrize(
    ("output", "began"),
    [
        ("", "0 of 1"),
        ("TAP version 13\n1..6\n", "0 of 6"),
        (OUTPUT.replace("1..3", "1..4"), "3 of 4"),
    ],
)
def test_tests_that_did_not_begin_are_a_failure(output: str, began: str) -> None:
    *_, missing = read_selftests("dyn_test", output)
    assert (missing.id, missing.result) == ("dyn.not_begun", Result.NONE)
    assert missing.why == (f"{began} tests began: the program ended early",)
    row = Row(Ran(missing), ())
    assert (row.agrees, row.explained) == (False, False)


class Guest:
    """Its programs print one line each, and the second crashes the kernel, or does not end."""

    machine = SimpleNamespace(slowness=1.0)

    def __init__(self, end: Exception | None) -> None:
        self._end = end

    def run(self, words: list[str], *, descriptors: tuple[int, ...], deadline: Deadline) -> int:
        if words == ["./two"] and self._end is not None:
            raise self._end
        os.write(descriptors[1], OUTPUT.replace("not ok 1", "ok 1").encode())
        return 0

    def reports(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(text="WARNING: CPU: 0")]


@pytest.mark.parametrize(
    ("end", "reported", "programs", "guests"),
    [
        (GuestCrashed("Oops: no"), "the guest crashed: Oops: no", {"one", "two"}, 1 + 1),
        (TimedOut(), "WARNING: CPU: 0", {"one", "two", "three"}, 2 + 2),
        (None, "WARNING: CPU: 0", {"one", "two", "three"}, 1 + 3),
    ],
)
def test_kernel_reports_and_crashes_are_returned(
    end: Exception | None,
    reported: str,
    programs: set[str],
    guests: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of each program that prints, a failed test runs again in a guest of its own."""
    opened = []

    @contextmanager
    def guest(*_: object) -> Iterator[Guest]:
        opened.append(Guest(end))
        yield opened[-1]

    monkeypatch.setattr(run, "program_guest", guest)
    ran, reports = run.run_selftests(
        cast(Target, None), [Path(f"/{n}") for n in ("one", "two", "three")]
    )
    assert (reports[0], len(opened)) == (reported, guests)
    assert {each.test.program for each in ran} == programs


def test_without_cases_none_is_run() -> None:
    assert _results(Namespace(), []) == ()


def test_without_a_verdict_of_cases_nothing_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case without a verdict does not deviate."""
    lost = replace(_case(), outcome=Outcome.ERROR)

    def run_cases(_: Namespace, kernel: str, out: str, *, stdout: IO[str], stderr: IO[str]) -> int:
        stdout.write("uevt: 6.12 ERROR: 0 passed\n")
        Path(out).mkdir()
        write_results(sample(lost), Path(out) / NAME)
        return 3

    monkeypatch.setattr(selftests, "session", run_cases)
    with pytest.raises(HostTrouble, match="our cases have no verdict: uevt: "):
        _results(Namespace(kernel="6.12"), ["write.parts"])


PASSED = Selftest("dyn_test", "matching", Result.OK)
FAILED = replace(PASSED, result=Result.NOT_OK, why=("dyn_test.c:9: Expected 0 (0) == x() (-1)",))
BUSY = replace(FAILED, why=("dyn_test.c:9: Expected 0 (0) == event_delete() (-1)",))


@pytest.mark.parametrize(
    ("ran", "outcome", "agrees", "explained"),
    [
        (Ran(PASSED), Outcome.PASS, True, False),
        (Ran(PASSED), Outcome.XFAIL, True, False),
        (Ran(PASSED), Outcome.FAIL, False, False),
        (Ran(FAILED, FAILED), Outcome.FAIL, True, False),
        (Ran(FAILED, FAILED), Outcome.PASS, False, False),
        (Ran(FAILED, PASSED), Outcome.PASS, False, True),
        (Ran(BUSY, BUSY), Outcome.PASS, False, True),
        (Ran(BUSY, BUSY), Outcome.CRASH, True, False),
        (Ran(replace(FAILED, result=Result.NONE)), Outcome.PASS, False, False),
    ],
)
def test_disagreement(ran: Ran, outcome: Outcome, agrees: bool, explained: bool) -> None:
    row = Row(ran, (replace(_case(), outcome=outcome, level=Level.CONTRACT),))
    assert (row.agrees, row.explained) == (agrees, explained)
    assert ("not explained" in "".join(row.lines())) is not (agrees or explained)


def _case() -> CaseResult:
    return next(each for each in mixed().cases if each.outcome is Outcome.PASS)


def test_counterparts_and_explanations_exist() -> None:
    known = {case.id for case in all_cases()}
    assert {case for cases in COUNTERPARTS.values() for case in cases} <= known
    headings = re.findall(r"(?m)^## (.+)$", (ROOT / "docs/selftests.md").read_text())
    assert {each.heading for each in EXPLANATIONS} == set(headings)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("selftests", "no kernel named; name --kernel 6.12 or --tree DIR"),
        ("selftests --kernel model", "the model has no source with selftests; name "),
        ("selftests --image x", "unknown option --image"),
        ("selftests --kernel 6.12 --tree x", "--kernel and --tree exclude each other"),
    ],
)
def test_only_kernels_with_their_source_are_tested(uevt: Uevt, words: str, message: str) -> None:
    assert message in uevt(*words.split(), code=2).err


def test_a_tree_without_selftests(tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match="has no selftests of user_events"):
        compile_selftests(tmp_path, tmp_path)


def test_selftests_on_6_12(uevt: Uevt, built_kernel: BuiltKernel) -> None:
    rows = json.loads(uevt("selftests", "--kernel", "6.12", "--json").out)
    assert {row["selftest"] for row in rows} <= COUNTERPARTS.keys()
    assert len(rows) == 18
    assert {row["uevt"] for row in rows} == {"PASS"}
    assert all(row["agrees"] or row["explanation"] for row in rows)
