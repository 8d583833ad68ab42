"""Progress on a terminal and in a log file."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from itertools import islice

import pytest

from host.progress import Step, StreamProgress
from tests.host.test_text import Terminal


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Step("unpacking"), "unpacking"),
        (Step("unpacking", elapsed_s=75.9), "unpacking, 1:15"),
        (
            Step("compiling 6.12", elapsed_s=61, done=12, expected=2000),
            "compiling 6.12, 12/2000 objects, 1:01",
        ),
        (
            Step("compiling", elapsed_s=60, done=500, expected=2000, passing=True),
            "compiling, 500/2000 objects, 1:00, about 3:00 left",
        ),
        # From the first second: at the usual rate, and later at the observed one.
        (
            Step("compiling", elapsed_s=0.5, done=0, expected=2000, usual_s=0.2, passing=True),
            "compiling, 0/2000 objects, about 7:00 left",
        ),
        (
            Step("compiling", elapsed_s=390, done=950, expected=2000, usual_s=0.2, passing=True),
            "compiling, 950/2000 objects, 6:30, about 7:00 left",
        ),
        # The objects of an interrupted build took none of this time.
        (
            Step("compiling", elapsed_s=60, done=1500, expected=2000, begun=1000, passing=True),
            "compiling, 1500/2000 objects, 1:00, about 1:00 left",
        ),
        (
            Step("compiling", elapsed_s=60, done=2001, expected=2000, passing=True),
            "compiling, 2001/2001 objects, 1:00",
        ),
        (Step("compiling", done=12), "compiling, 12 objects"),
        (Step("compiling", done=2001, expected=2000), "compiling, 2001/2001 objects"),
    ],
)
def test_a_step_as_text(step: Step, text: str) -> None:
    assert str(step) == text


def test_a_terminal_has_one_line_per_phase_rewritten_in_place() -> None:
    stream = Terminal()
    report = StreamProgress(stream)
    report(Step("unpacking the source", passing=True))
    report(Step("building", done=9, passing=True))
    report(Step("building", done=10, passing=True))
    report(Step("building", done=8, passing=False))
    assert stream.getvalue() == (
        "\ruevt: unpacking the source\n\ruevt: building, 9 objects\ruevt: building, 10 objects"
        "\ruevt: building, 8 objects \n"
    )


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The seconds of a clock that runs while they are counted."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def count() -> Iterator[int]:
        for second in range(60):
            now[0] = 100.0 + second
            yield second

    return count()


def test_log_gets_few_lines(seconds: Iterator[int]) -> None:
    stream = io.StringIO()
    report = StreamProgress(stream)
    for second in islice(seconds, 31):
        report(Step("building", elapsed_s=second, done=second, passing=True))
    report(Step("building", elapsed_s=31, done=31))
    assert stream.getvalue() == (
        "uevt: building, 0 objects\n"
        "uevt: building, 15 objects, 0:15\n"
        "uevt: building, 30 objects, 0:30\n"
        "uevt: building, 31 objects, 0:31\n"
    )


def test_waiting_is_one_line_of_a_log(seconds: Iterator[int]) -> None:
    stream = io.StringIO()
    report = StreamProgress(stream)
    for second in seconds:
        holder = "process 7" if second < 40 else "process 8"
        report(Step(f"waiting for {holder}", elapsed_s=second, passing=True, idle=True))
    assert stream.getvalue() == ("uevt: waiting for process 7\nuevt: waiting for process 8, 0:40\n")
