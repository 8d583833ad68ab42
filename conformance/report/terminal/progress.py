"""What a person sees of a run while it runs, and at its end; the verdict is the last line.

Each unexpected case is told as it ends: its first line begins with the outcome and the id of the
case, what explains it is indented.  On a terminal one more line moves, and is gone at the end.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from conformance.report.failure import render_failure
from conformance.report.terminal.summary import DETAILED, TOLD, render_summary
from conformance.results.case_result import CaseResult
from conformance.results.run import RunHead, RunRecord
from conformance.results.verdict import case_line, verdict_line
from host.text import Outlet, one_line

# Seconds between two states of the line that moves: more of them nobody can read.
_INTERVAL = 0.1
_ERASE = "\r\x1b[K"


class Live:
    """Tells a run to ``stream``.

    ``stale`` finds the expectations that a run shows to be of no use.  ``moving`` allows a line
    that is rewritten; ``quiet`` leaves out all but one line for each unexpected case and the
    verdict; ``escape`` is as Outlet has it.
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
        stale: Callable[[RunRecord], Sequence[str]] = lambda record: (),
    ) -> None:
        self._outlet = Outlet(stream, escape)
        self._head = head
        self._directory = directory
        self._moving = moving
        self._colour = colour
        self._quiet = quiet
        self._stale = stale
        self._selected = 0
        self._ended = 0
        self._told = 0
        self._last = float("-inf")

    def begin(self, selected: int) -> None:
        """So many cases will end."""
        self._selected = selected
        self._move("guests boot")

    def case(self, result: CaseResult) -> None:
        """A case ended."""
        self._ended += 1
        self._tell(result)
        self._move(result.id)

    def remark(self, result: CaseResult) -> None:
        """Something ended that is no selected case."""
        self._tell(result)

    def end(self, record: RunRecord | None) -> None:
        """The run is over; None where it has no result."""
        if record is None:
            self._say("")
        elif self._quiet:
            self._say(verdict_line(record, colour=self._colour) + "\n")
        else:
            directory, colour, stale = self._directory, self._colour, self._stale(record)
            text = render_summary(
                record, directory=directory, colour=colour, told=True, stale=stale
            )
            self._say(text)

    def _tell(self, result: CaseResult) -> None:
        if result.outcome not in TOLD:
            return
        self._told += 1
        if self._quiet or self._told > DETAILED:
            self._say(case_line(result) + "\n")
        else:
            self._say("\n".join([*render_failure(result, self._head), "", ""]))

    def _move(self, what: str) -> None:
        now = time.monotonic()
        if not self._moving or (now - self._last < _INTERVAL and self._ended < self._selected):
            return
        self._last = now
        bad = f", {self._told} unexpected" if self._told else ""
        text = f"uevt: {one_line(self._head.kernel.id)} {self._ended}/{self._selected}{bad}  {what}"
        # A line that the terminal folds cannot be taken back.
        room = shutil.get_terminal_size().columns - 1
        self._outlet.write(f"{_ERASE}{text[:room]}")

    def _say(self, text: str) -> None:
        self._outlet.write(f"{_ERASE}{text}" if self._moving else text)
