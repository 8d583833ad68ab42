"""The running kernel as the runner's Guest: never replaced, put back in order instead."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.cases.case import Case, Facility, Isolation
from conformance.ops.calls import Call
from conformance.ops.system_calls import MACHINE
from conformance.results.outcome import SkipReason
from conformance.runner.guest_setup import text_of
from conformance.runner.judgement import NotJudged
from conformance.session.here.foreign_events import FILES, without_events
from conformance.session.here.system import BorrowedSystem
from conformance.session.target.target import Target
from conformance.session.time_limits import Limits, RunLimit
from conformance.session.worker.console_guest import ConsoleGuest
from host.shared_count import SharedCount
from vm.errors import HostTrouble, VmError
from vm.here.machine import RunningKernel, UnkillableProcess

# Calls of tasks (vm.agent.agent).
_OF_TASKS = frozenset({"task", "via", "race"})
# Of programs that are attached to kprobes: their context is struct pt_regs.
_READS_REGISTERS = frozenset({Facility.KPROBES, Facility.BPF_TRACING})


class HereGuest(ConsoleGuest):
    """The kernel of this system as the runner's Guest."""

    start = "running"

    def __init__(
        self,
        target: Target,
        directory: Path,
        system: BorrowedSystem,
        limit: RunLimit | None = None,
        hung: SharedCount | None = None,
    ) -> None:
        """Note the state of the system, then start the agent.  Raises VmError, OSError."""
        self._target = target
        self._system = system
        try:
            system.begin()
            self._kernel = RunningKernel(directory)
            system.note_session(self._kernel.session)
        except BaseException:
            system.restore()
            raise
        super().__init__(self._kernel, Limits(limit, hung))
        # Why no other case can be judged, "" while they can.
        self._broken = ""
        self._finished = False

    def call(
        self,
        actor: str,
        calls: Sequence[Sequence[object]],
        watch: Sequence[tuple[str, int, int]] = (),
    ) -> list[dict[str, Any]]:
        """See conformance.runner.guest.Channel; events of other programs are hidden."""
        if not MACHINE.runs_tasks and any(each[0] in _OF_TASKS for each in calls):
            raise NotJudged(SkipReason.RUNNING_KERNEL, "it runs machine code of x86-64")
        results = super().call(actor, calls, watch)
        if self._system.foreign:
            for call, result in zip(calls, results, strict=True):
                if call[0] == "slurp" and call[1] in FILES and result["data"]:
                    hidden = without_events(text_of(result), self._system.foreign)
                    result["data"] = hidden.encode("latin-1").hex()
                    result["value"] = len(hidden)
        return results

    def wait_ready(self) -> None:
        """Wait for the agent.  Raises VmError."""
        self._kernel.wait_ready()
        self._pin(1)
        self._read_up_to = self._kernel.console.position()

    def pristine(self, processors: int = 1, *, programs: bool = False) -> None:
        """End all processes, remove what cases left, and go on with new processes."""
        if not self._broken and (crash := self._kernel.crash):
            self._broken = f"the kernel crashed: {crash}"
        if self._broken:
            raise HostTrouble(self._broken, hint="reboot")
        self._limits.end()
        try:
            self._kernel.restart(self._system.tidy)
        except UnkillableProcess as error:
            self._broken = str(error)
            raise
        self._system.note_session(self._kernel.session)
        self._pin(processors)
        # _read_up_to stays: what the kernel reported meanwhile is of the cases before.

    def mounting(self) -> Call:
        """See conformance.runner.guest.Guest; ``unfit`` excludes such cases."""
        raise NotJudged(SkipReason.RUNNING_KERNEL, "its programs are not mounted")

    def _pin(self, processors: int) -> None:
        """Let the actors run on the first processors only, as in a guest with so many."""
        with contextlib.suppress(OSError):
            os.sched_setaffinity(self._kernel.session, range(processors))

    def configured(self, option: str) -> bool | None:
        """See conformance.runner.guest.Guest."""
        config = self._target.config
        return None if config is None else f"{option}=y" in config.read_text().splitlines()

    def hand_over(self) -> None:
        """Never used by a forked process."""

    def finish(self) -> None:
        """End all processes and restore the system, unless the kernel is broken.  Idempotent.

        Raises UnkillableProcess, and LogOverrun if it is unknown whether the kernel crashed.
        """
        if self._finished:
            return
        self._finished = True
        with contextlib.ExitStack() as last:
            last.callback(self._leave_system)
            last.callback(self._end_processes)
            self._broken = self._broken or self._kernel.crash

    def _end_processes(self) -> None:
        try:
            self._kernel.end()
        except UnkillableProcess as error:
            self._broken = self._broken or str(error)
            raise

    def _leave_system(self) -> None:
        if self._broken:
            self._system.give_up(self._broken)
        else:
            self._system.restore()

    def end(self) -> None:
        """See ``finish``; what it raises is a result if cases have run."""
        try:
            with contextlib.suppress(VmError):
                self.finish()
        finally:
            self._kernel.console.close()

    close = end


def unfit(system: BorrowedSystem, case: Case) -> str:
    """Why a case cannot judge the running kernel, "" if it can."""
    if case.isolation is Isolation.FATAL:
        return "it destroys the system, or changes it until the next boot"
    if case.own_kernel:
        return case.own_kernel
    if case.programs:
        return "it runs programs in a guest of their own"
    if case.isolation is Isolation.GLOBAL and system.foreign:
        return "it needs a system without other user events"
    if not MACHINE.runs_tasks and set(case.facilities) >= _READS_REGISTERS:
        return "it reads the registers of x86-64"
    if not set(range(case.processors)) <= os.sched_getaffinity(0):
        return f"it needs the first {case.processors} processors"
    return ""
