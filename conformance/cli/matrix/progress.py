"""The state of a matrix: on one screen, and in report.html of all kernels."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from msgspec import Struct, field

from conformance.report.matrix.findings import read_findings
from conformance.report.matrix.html import render_html
from conformance.report.matrix.table import matrix
from conformance.results.directory import REPORT
from conformance.results.stored_runs import Run, latest_runs, read_run
from host.files import write_atomically
from host.text import cut

WAITING, DONE = "waiting", "done"
_INTERVAL_S = 0.5


class Column(Struct):
    """One kernel: ``state`` is a word for people, ``left_s`` seconds of its cases on one guest.

    ``running`` are the numbers of cases that have ended in shards that run.
    """

    kernel: str
    state: str = WAITING
    cases: int = 0
    done: int = 0
    unexpected: int = 0
    left_s: float = 0.0
    runs: dict[str, Run] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)

    def add(self, part: str, run: Run) -> None:
        """A shard was judged."""
        record = run.record
        self.runs[part] = run
        self.done += len(record.shards[0].cases)
        self.unexpected += len(record.failures)

    def line(self, *, moving: bool) -> str:
        """One line for people; ``moving``: with shards that run."""
        parts = [f"{self.kernel:20} {self.state}"]
        if self.cases:
            # Another thread adds to it.
            running = sum([*self.running.values()]) if moving else 0
            parts.append(f"{self.done + running}/{self.cases} cases")
        if self.unexpected:
            parts.append(f"{self.unexpected} unexpected")
        return ", ".join(parts)


class Screen:
    """Prints the columns: in place on a terminal, else a line for each change."""

    def __init__(self, stream: TextIO, columns: Sequence[Column], *, moving: bool) -> None:
        self._stream = stream
        self._columns = columns
        self._moving = moving
        self._shown: list[str] = []
        self._last = float("-inf")

    def show(self, workers: int, *, final: bool = False) -> None:
        """Show the present state."""
        now = time.monotonic()
        if self._moving:
            lines = self._fitting([_left(self._columns, workers), *self._lines()])
        else:
            lines = self._lines()
        if lines == self._shown or (self._moving and not final and now - self._last < _INTERVAL_S):
            return
        self._last = now
        if self._moving:
            up = f"\x1b[{len(self._shown)}A" if self._shown else ""
            self._stream.write(up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
        else:
            self._stream.write("".join(f"{line}\n" for line in lines if line not in self._shown))
        self._stream.flush()
        self._shown = lines

    def _lines(self) -> list[str]:
        return [column.line(moving=self._moving) for column in self._columns]

    def _fitting(self, lines: list[str]) -> list[str]:
        """The first line, and as many kernels as there are rows, those that are done last.

        The cursor cannot move up to a line that scrolled out, nor know how often one wrapped.
        """
        size = shutil.get_terminal_size()
        # One row is for the cursor.
        rows = max(3, size.lines - 1)
        if len(lines) > rows:
            by_line = zip(self._columns, lines[1:], strict=True)
            ordered = sorted(by_line, key=lambda each: _urgency(each[0]))
            kept = [line for _, line in ordered[: rows - 2]]
            lines = [lines[0], *kept, f"... and {len(self._columns) - len(kept)} more"]
        return [cut(line, size.columns - 1) for line in lines]


def _urgency(column: Column) -> int:
    """Ranks kernels that are built or judged first, then those that wait, then those done."""
    return {WAITING: 1, DONE: 2}.get(column.state, 0)


def _left(columns: Sequence[Column], workers: int) -> str:
    done = sum(column.state == DONE for column in columns)
    minutes = sum(column.left_s for column in columns) / max(1, workers) / 60
    left = f", about {minutes:.0f} min left for built ones" if minutes >= 1 else ""
    return f"{done} of {len(columns)} kernels, {workers} workers{left}"


def write_overview(directory: Path) -> None:
    """Write report.html of the kernels so far.  Raises OSError, ReportError."""
    found = [read_run(file) for file in latest_runs(directory)]
    # A self-check is no column.
    runs = [run for run in found if not run.record.head.self_check]
    if not runs:
        return
    write_atomically(directory / REPORT, render_html(matrix(runs), read_findings()))
