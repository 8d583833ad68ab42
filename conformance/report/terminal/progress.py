"""Live output of a run for a person; the last line is the verdict.

The first case of each cause that fails the run is printed as it ends: the first line has outcome
and id, its evidence is indented.  On a terminal a progress line is updated in place, and removed
at the end.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from conformance.report.causes import symptom
from conformance.report.failure import render_failure
from conformance.report.terminal.summary import DETAILED, render_summary
from conformance.results.case_result import CaseResult
from conformance.results.run import RunHead, RunRecord
from conformance.results.verdict import case_line, verdict_line
from host.text import Outlet, one_line

# Seconds between updates of the progress line.
_INTERVAL = 0.1
_ERASE = "\r\x1b[K"


class Live:
    """Print a run to ``stream``.

    ``moving`` enables the progress line; ``quiet`` prints one line for each case that fails the run
    and the verdict; ``escape`` is that of Outlet.
    """

    def __init__(
        self,
        stream: TextIO,
        head: RunHead,
        directory: Path,
        *,
        moving: bool = False,
        colour: bool = False,
        quiet: bool = False,
        escape: Callable[[str], str] = str,
    ) -> None:
        self._outlet = Outlet(stream, escape)
        self._head = head
        self._directory = directory
        self._moving = moving
        self._colour = colour
        self._quiet = quiet
        self._selected = 0
        self._ended = 0
        self._failures = 0
        self._causes: dict[object, str] = {}
        self._last = float("-inf")

    def begin(self, selected: int) -> None:
        """The number of cases is known."""
        self._selected = selected
        self._move("booting guests")

    def case(self, result: CaseResult) -> None:
        """A case ended."""
        self._ended += 1
        self._show(result)
        self._move(result.id)

    def remark(self, result: CaseResult) -> None:
        """A result that is not of a selected case."""
        self._show(result)

    def end(self, record: RunRecord | None) -> None:
        """The run ended; None without a result."""
        if record is None:
            self._say("")
        elif self._quiet:
            self._say(verdict_line(record, colour=self._colour) + "\n")
        else:
            directory, colour = self._directory, self._colour
            self._say(
                render_summary(
                    record, directory=directory, colour=colour, shown=self._causes.values()
                )
            )

    def _show(self, result: CaseResult) -> None:
        if not self._head.fails(result.outcome):
            return
        self._failures += 1
        cause = symptom(result)
        known = cause in self._causes
        self._causes.setdefault(cause, result.id)
        if self._quiet or (not known and len(self._causes) > DETAILED):
            self._say(case_line(result) + "\n")
        elif not known:
            self._say("\n".join([*render_failure(result, self._head), "", ""]))

    def _move(self, what: str) -> None:
        now = time.monotonic()
        if not self._moving or (now - self._last < _INTERVAL and self._ended < self._selected):
            return
        self._last = now
        bad = f", {self._failures} failed" if self._failures else ""
        text = f"uevt: {one_line(self._head.kernel.id)} {self._ended}/{self._selected}{bad}  {what}"
        # A line that the terminal wraps cannot be erased.
        room = shutil.get_terminal_size().columns - 1
        self._outlet.write(f"{_ERASE}{text[:room]}")

    def _say(self, text: str) -> None:
        self._outlet.write(f"{_ERASE}{text}" if self._moving else text)
