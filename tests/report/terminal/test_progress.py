"""Live output of a run."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.report.terminal.progress import Live
from conformance.report.terminal.summary import render_summary
from conformance.results.outcome import Outcome
from conformance.results.run import RunRecord
from conformance.results.verdict import verdict_line
from tests.report.samples import case, failure, head, many_causes, mixed, run, wrong

PLACE = Path("results/6.12/x")


def shown(record: RunRecord, *, moving: bool = False, quiet: bool = False) -> str:
    """The output of a whole run."""
    stream = io.StringIO()
    live = Live(stream, head(), PLACE, moving=moving, quiet=quiet)
    live.begin(record.selected)
    for each in record.cases:
        live.case(each)
    live.end(record)
    return stream.getvalue()


def test_a_log_gets_failures_and_summary_in_order() -> None:
    assert shown(mixed()) == render_summary(mixed(), directory=PLACE)


@pytest.mark.parametrize("quiet", [False, True])
def test_each_failed_case_begins_a_line(quiet: bool) -> None:
    bad = ["FAIL", "CRASH", "TIMEOUT", "ERROR"]
    first = [line.split()[:2] for line in shown(mixed(), quiet=quiet).splitlines() if line]
    found = [(words[0], words[1].rstrip(":")) for words in first if words[0] in bad]
    assert found == [(each.outcome, each.id) for each in mixed().cases if each.outcome in bad]


def test_quiet_output_has_one_line_per_failed_case() -> None:
    printed = shown(mixed(), quiet=True).splitlines()
    assert len(printed) == 5
    assert printed[0] == "FAIL registration.size_short: a structure of four bytes is accepted"
    assert printed[-1] == verdict_line(mixed())
    good = run(case("write.a"))
    assert shown(good, quiet=True) == verdict_line(good) + "\n"


def test_a_failure_is_printed_when_its_case_ends() -> None:
    stream = io.StringIO()
    live = Live(stream, head(), PLACE)
    live.begin(2)
    live.case(case("write.a"))
    assert stream.getvalue() == ""
    live.case(failure())
    assert stream.getvalue().startswith("FAIL registration.size_short (contract, ")


def test_after_ten_causes_details_are_left_out() -> None:
    text = shown(run(*many_causes()))
    assert "\nFAIL write.aj (contract, 0.00 s)\n" in text
    assert "\nFAIL write.ak: Eak\nFAIL write.al: Eal\n" in text


def test_failures_of_one_cause_are_one_block_with_a_list() -> None:
    failed = wrong("write.a"), wrong("perf.b"), wrong("write.c", "EBUSY"), wrong("write.d")
    text = shown(run(*failed))
    assert text.count("expected") == 2
    assert "\n  the same difference as write.a in 2 more cases: perf.b, write.d\n" in text
    text = shown(run(*(replace(each, sentence=f"{each.id} holds.") for each in failed)))
    assert "\n    perf.b: perf.b holds.\n    write.d: write.d holds.\n" in text


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set the width of the terminal."""

    def set_to(number: int) -> None:
        size = os.terminal_size((number, 24))
        monkeypatch.setattr(shutil, "get_terminal_size", lambda fallback=None: size)

    return set_to


def test_the_progress_line_is_erased_at_the_end(columns: Callable[[int], None]) -> None:
    columns(80)
    text = shown(run(case("write.a"), case("write.b", Outcome.FAIL)), moving=True)
    states = text.split("\r\x1b[K")
    assert states[:2] == ["", "uevt: 6.12 0/2  booting guests"]
    assert "uevt: 6.12 2/2, 1 failed  write.b" in states
    assert states[-1].splitlines()[-1].startswith("uevt: 6.12 (6.12.117) FAIL")
    assert "\n" not in "".join(state for state in states if state.startswith("uevt: 6.12 2/2"))


def test_the_progress_line_fits_the_terminal(columns: Callable[[int], None]) -> None:
    columns(20)
    for state in shown(run(case("write." + "x" * 50)), moving=True).split("\r\x1b[K"):
        if state.startswith("uevt: 6.12 1/1"):
            assert len(state) == 19
