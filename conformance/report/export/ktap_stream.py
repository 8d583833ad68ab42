"""A run in KTAP version 1 as it happens: cases in the order in which they end, not nested.

The plan counts the selected cases and one more, `uevt.run`, for problems of the whole run that no
case shows.  Readers detect a run that was cut off by the missing entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TextIO

from conformance.report.export.ktap import RUN_ID, VERSION, case_lines, detail, head_lines
from conformance.results.case_result import CaseResult
from conformance.results.run import SELF_CHECK, RunHead, RunRecord
from host.text import Outlet, one_line


def write_skipped(stream: TextIO, why: str) -> None:
    """Write a run without cases.  Raises OSError."""
    stream.write(f"{VERSION}\n1..0 # SKIP {detail(why)}\n")
    stream.flush()


class _Lines:
    """Lines written to a stream at once."""

    def __init__(self, stream: TextIO, escape: Callable[[str], str] = str) -> None:
        self._outlet = Outlet(stream, escape)

    def _say(self, *lines: str) -> None:
        self._outlet.write("".join(f"{line}\n" for line in lines))


class KtapStream(_Lines):
    """Write one run.  ``require`` makes a kernel without user_events a failure.

    ``escape`` is that of Outlet.  Methods raise OSError if the disk is full.
    """

    def __init__(
        self,
        stream: TextIO,
        head: RunHead,
        *,
        require: bool = False,
        escape: Callable[[str], str] = str,
    ) -> None:
        super().__init__(stream, escape)
        self._head = head
        self._require = require
        self._ended = 0
        self._begun = False
        self._remarks: list[str] = []

    def begin(self, selected: int) -> None:
        """The number of cases is known."""
        self._begun = True
        # Nothing may stand between version and plan: kunit.py of 6.1 misses the plan otherwise.
        self._say(VERSION, f"1..{selected + 1}", *head_lines(self._head))

    def case(self, result: CaseResult) -> None:
        """A case ended."""
        self._ended += 1
        self._say(*case_lines(self._ended, result, self._head))

    def remark(self, result: CaseResult) -> None:
        """A result that is not of a selected case, and not in the plan."""
        if self._head.fails(result.outcome):
            self._remarks.append(f"{result.id} {result.outcome}")
        self._say(*case_lines(0, result, self._head)[:-1])

    def end(self, record: RunRecord | None) -> None:
        """The run ended; None without a result."""
        if not self._begun:
            return
        name = f"{self._ended + 1} {RUN_ID}"
        if record is None:
            self._say("Bail out! the run ended without a result")
        elif record.not_built:
            note = detail(record.not_built_reason)
            self._say(
                f"not ok {name} # ERROR {note}" if self._require else f"ok {name} # SKIP {note}"
            )
        elif trouble := detail(record.trouble or ", ".join(self._remarks)):
            self._say(f"not ok {name} # ERROR {trouble}")
            if record.missing:
                self._say(f"Bail out! {trouble}")
        elif why := detail(record.judged_nothing):
            self._say(f"ok {name} # SKIP {why}")
        else:
            self._say(f"ok {name}")
        self._begun = False


class KtapRuns(_Lines):
    """Write several runs as subtests, their lines indented as they come."""

    def __init__(self, stream: TextIO, planned: int) -> None:
        super().__init__(stream)
        self._number = 0
        self._say(VERSION, f"1..{planned}")

    def bail_out(self, why: str) -> None:
        """The remaining runs will not come."""
        self._say(f"Bail out! {why}")

    def run(self, name: str, lines: Iterable[str]) -> None:
        """Copy the lines of one run, and judge it by them."""
        self._number += 1
        results = []
        bad = False
        for line in lines:
            self._say(f"  {line.rstrip()}")
            bad = bad or line.startswith(("not ok ", "Bail out!"))
            if line.startswith(("ok ", "not ok ")):
                results.append(line)
        number = f"{self._number} {one_line(name)}"
        if not results:
            self._say(f"not ok {number} # ERROR it did not begin")
        elif bad or RUN_ID not in results[-1].split():
            self._say(f"not ok {number}")
        elif results[-1].rstrip().endswith(f" # SKIP {SELF_CHECK}"):
            self._say(f"ok {number} # SKIP {SELF_CHECK}")
        elif all(" # SKIP" in line for line in results):
            self._say(f"ok {number} # SKIP every case was skipped")
        else:
            self._say(f"ok {number}")
