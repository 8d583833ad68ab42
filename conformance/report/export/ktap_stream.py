"""A run in KTAP version 1 while it runs: each case as it ends, so nothing is sorted or nested.

The plan counts the selected cases and one more, `uevt.run`: what is wrong with the run as a
whole and is told by no case, as a case that never ended.  A stream that stops before that
entry is a run that was cut off, which every reader notices by the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TextIO

from conformance.report.export.ktap import RUN_ID, VERSION, case_lines, detail, head_lines
from conformance.results.case_result import CaseResult
from conformance.results.run import RunHead, RunRecord
from host.text import Outlet, one_line


class KtapStream:
    """Writes one run.  ``require`` makes a kernel without user_events a failure.

    ``escape`` is as Outlet has it.  Methods raise OSError when the disk refuses.
    """

    def __init__(
        self,
        stream: TextIO,
        head: RunHead,
        *,
        require: bool = False,
        escape: Callable[[str], str] = str,
    ) -> None:
        self._outlet = Outlet(stream, escape)
        self._head = head
        self._require = require
        self._ended = 0
        self._begun = False
        self._remarks: list[str] = []

    def begin(self, selected: int) -> None:
        """So many cases will end."""
        self._begun = True
        # Nothing between version and plan: kunit.py of 6.1 takes it for no plan.
        self._say([VERSION, f"1..{selected + 1}", *head_lines(self._head)])

    def case(self, result: CaseResult) -> None:
        """A case ended."""
        self._ended += 1
        self._say(case_lines(self._ended, result, self._head))

    def remark(self, result: CaseResult) -> None:
        """Something ended that is no selected case, and that the plan does not count."""
        self._remarks.append(f"{result.id} {result.outcome}")
        self._say(case_lines(0, result, self._head)[:-1])

    def end(self, record: RunRecord | None) -> None:
        """The run is over; None where it has no result."""
        if not self._begun:
            return
        name = f"{self._ended + 1} {RUN_ID}"
        if record is None:
            self._say(["Bail out! the run ended without a result"])
        elif record.not_built:
            said = detail(record.note)
            line = f"not ok {name} # ERROR {said}" if self._require else f"ok {name} # SKIP {said}"
            self._say([line])
        elif trouble := detail(record.trouble or ", ".join(self._remarks)):
            self._say([f"not ok {name} # ERROR {trouble}"])
            if record.missing:
                self._say([f"Bail out! {trouble}"])
        else:
            self._say([f"ok {name}"])
        self._begun = False

    def _say(self, lines: Iterable[str]) -> None:
        self._outlet.write("".join(f"{line}\n" for line in lines))


class KtapRuns:
    """Writes several runs, each one subtest: its lines as they come, two columns deeper."""

    def __init__(self, stream: TextIO, planned: int) -> None:
        self._outlet = Outlet(stream)
        self._number = 0
        self._say([VERSION, f"1..{planned}"])

    def bail_out(self, why: str) -> None:
        """The runs that are left will not come."""
        self._say([f"Bail out! {why}"])

    def run(self, name: str, lines: Iterable[str]) -> None:
        """Pass the lines of one run on, and judge it by them."""
        self._number += 1
        results = []
        bad = False
        for line in lines:
            self._say([f"  {line.rstrip()}"])
            bad = bad or line.startswith(("not ok ", "Bail out!"))
            if line.startswith(("ok ", "not ok ")):
                results.append(line)
        number = f"{self._number} {one_line(name)}"
        if not results:
            self._say([f"not ok {number} # ERROR it did not begin"])
        elif bad or RUN_ID not in results[-1].split():
            self._say([f"not ok {number}"])
        elif all(" # SKIP" in line for line in results):
            self._say([f"ok {number} # SKIP every case was skipped"])
        else:
            self._say([f"ok {number}"])

    def _say(self, lines: Iterable[str]) -> None:
        self._outlet.write("".join(f"{line}\n" for line in lines))
