"""What guests of the runner share: calls within limits, marks, and reports on the console."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from conformance.client import executor as sut
from conformance.results.case_result import Report
from conformance.session.time_limits import CASE_S, Limits
from conformance.session.worker.blame import report
from host.deadline import Deadline
from host.kernel_reports import HARMLESS
from vm.errors import NoAnswer
from vm.kernel_log.lines import Mark

if TYPE_CHECKING:
    # Imported where it is needed: the running kernel is judged without QEMU.
    from vm.here.machine import RunningKernel
    from vm.machine import Machine

_PAUSE = 0.003


class ConsoleGuest:
    """A machine with a console as the runner's Guest."""

    def __init__(self, machine: Machine | RunningKernel, limits: Limits) -> None:
        self._called = machine
        self._limits = limits
        # The last mark, until it is confirmed on the console.
        self._mark: Mark | None = None
        # The texts of the last mark and of the one before it.
        self._current_mark = self._previous_mark = ""
        # Position up to which the console was searched, at first where the guest was ready.
        self._read_up_to = 0
        # Position on the console where the last late reports begin.
        self._reported: int | None = None

    def call(
        self,
        actor: str,
        calls: Sequence[Sequence[object]],
        watch: Sequence[tuple[str, int, int]] = (),
    ) -> list[dict[str, Any]]:
        """See conformance.runner.guest.Channel."""
        deadline = self._limits.clip(self._called.call_deadline(actor))
        try:
            return self._called.call(actor, calls, watch, deadline=deadline)
        except NoAnswer as error:
            if (cut := self._limits.cut) is not None:
                # The call may take longer: no proof that it hangs.
                cut.console, cut.findings = error.console, error.findings
                raise cut from error
            self._limits.hung()
            raise

    def deadline(self, seconds: float, what: str) -> Deadline:
        """See conformance.runner.guest.Channel."""
        return self._called.deadline(seconds, what)

    def pause(self, deadline: sut.Deadline) -> None:
        """See conformance.runner.guest.Channel."""
        time.sleep(min(_PAUSE, deadline.remaining()))

    def mark(self, text: str) -> int:
        """See conformance.runner.guest.Guest."""
        self._limits.begin(self._called.deadline(CASE_S, f"end of {text}"))
        self._mark = self._called.mark(text)
        self._previous_mark, self._current_mark = self._current_mark, text
        return self._mark.position

    def console(self, since: int) -> str:
        """See conformance.runner.guest.Guest."""
        start = since if self._reported is None else min(since, self._reported)
        return self._called.console.text(start)

    def late_reports(self) -> tuple[list[Report], str]:
        """See conformance.runner.guest.Guest."""
        start, self._read_up_to = self._read_up_to, self._called.console.position()
        found = [
            report(each, self._current_mark)
            for each in self._called.console.findings(start)
            if each.kind not in HARMLESS
        ]
        return found, self._called.console.text(start) if found else ""

    def reports(self, since: int) -> list[Report]:
        """See conformance.runner.guest.Guest."""
        if self._mark is not None:
            self._called.check(self._mark)
            self._mark = None
        self._limits.end()
        # Reports after the last search are of work that the kernel did later.
        start = min(since, self._read_up_to)
        self._read_up_to = self._called.console.position()
        reports = [
            report(
                each,
                self._previous_mark if start < since and each.mark != self._current_mark else "",
            )
            for each in self._called.console.findings(start)
            if each.kind not in HARMLESS
        ]
        self._reported = start if any(each.after for each in reports) else None
        return reports
