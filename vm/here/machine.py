"""The running kernel as a machine: perform calls in its actors, read its log."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from host.deadline import Deadline
from host.kernel_reports import CRASHES
from vm.agent.channel import ChannelEnded
from vm.errors import (
    ActorDied,
    AgentStuck,
    ChannelBroken,
    GuestCrashed,
    GuestTrouble,
    NoAnswer,
    VmError,
)
from vm.here.kernel_log import KernelLog
from vm.here.processes import AgentProcesses
from vm.kernel_log.lines import MARK_PREFIX, Mark
from vm.qemu.guest_files import compile_native

#: As many as a guest has.
_ACTORS = 8
#: Limits in seconds on a fast machine; `deadline` scales them.
_CALL_S = 4.0
_PING_S = 1.0
#: Limits that are not scaled, since the speed is not known yet or the machine may be stuck.
_START_S, _END_S = 60.0, 10.0
#: Duration of a ping on a fast machine, number of pings that measure it, and the largest factor.
_EXPECTED_PING_S = 0.00006
_PINGS = 5
_MAX_PACE = 16.0
_KERNEL_STATES = "DR"


class UnkillableProcess(NoAnswer):
    """A process of the agent hangs in the kernel and cannot be killed."""


class RunningKernel:
    """The kernel of this system as a guest, as a context manager.

    `directory` receives console.log and agent.log.  Closing it leaves no process behind, unless the
    kernel holds one.
    """

    start = "running"

    def __init__(self, directory: Path) -> None:
        """Start the agent.  Raises HostTrouble, OSError."""
        compile_native()
        directory.mkdir(parents=True, exist_ok=True)
        self._log = directory / "agent.log"
        self.console = KernelLog(directory / "console.log")
        # The file may go on after that of a run that is resumed.
        self._began = self._marked_at = self.console.position()
        self._marks = 0
        self._pace = 1.0
        self._info: dict[str, Any] | None = None
        self._processes: AgentProcesses | None = AgentProcesses(self._log, _ACTORS)

    def __enter__(self) -> RunningKernel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def session(self) -> int:
        """The id of the session that all processes of the agent belong to."""
        return self._running.session

    @property
    def _running(self) -> AgentProcesses:
        if self._processes is None:
            raise ChannelBroken("the agent has been ended")
        return self._processes

    def wait_ready(self) -> None:
        """Wait for the agent, and measure its speed.  Raises GuestTrouble, HostTrouble."""
        deadline = Deadline(_START_S, "first message of the agent")
        try:
            self._running.agent.hello(deadline)
        except GuestTrouble as trouble:
            raise self._explained(trouble, 0) from trouble
        self._marked_at = self.console.position()
        durations = []
        for _ in range(_PINGS):
            began = time.monotonic()
            self.call("", [["ping"]], deadline=deadline)
            durations.append(time.monotonic() - began)
        self._pace = min(max(1.0, min(durations) / _EXPECTED_PING_S), _MAX_PACE)

    @property
    def info(self) -> dict[str, Any]:
        """Facts about the kernel: release, config, boot_id and nproc."""
        if self._info is None:
            (result,) = self.call("", [["info"]])
            self._info = json.loads(bytes.fromhex(result["data"]))
        return self._info

    def deadline(self, seconds: float, what: str) -> Deadline:
        """A deadline of `seconds` on a fast machine, scaled to the measured speed."""
        return Deadline(seconds * self._pace, what, f"{seconds:g} s x {self._pace:.3g}")

    def call_deadline(self, actor: str) -> Deadline:
        """The default deadline of a call."""
        return self.deadline(_CALL_S, f"answer from actor {actor!r}")

    def call(
        self,
        actor: str,
        calls: Sequence[Sequence[object]],
        watch: Sequence[Sequence[object]] = (),
        *,
        deadline: Deadline | None = None,
    ) -> list[dict[str, Any]]:
        """Perform calls in an actor: see vm.machine.Machine.call.

        Raises GuestCrashed, ChannelBroken, NoAnswer, AgentStuck, ActorDied, CallRefused or
        LogOverrun.
        """
        since = self.console.position()
        if deadline is None:
            deadline = self.call_deadline(actor)
        try:
            return self._running.agent.call(actor, calls, watch, deadline)
        except (ActorDied, ChannelBroken, NoAnswer) as trouble:
            raise self._explained(trouble, since) from trouble

    def mark(self, text: str) -> Mark:
        """Write a line to the log.  Raises as call."""
        self._marks += 1
        line = f"{MARK_PREFIX}{self._marks} {text}".replace("\n", " ")
        since = self.console.position()
        (result,) = self.call("", [["mark", line]])
        if result["errno"]:
            error = os.strerror(result["errno"])
            raise ChannelBroken(f"the mark {line!r} could not be written: {error}")
        self._marked_at = since
        return Mark(line, since)

    def check(self, mark: Mark) -> None:
        """Raise ChannelBroken unless a mark is in the log."""
        if not self.console.has(mark.line, mark.position):
            raise ChannelBroken(
                f"mark {mark.line!r} is not in the log of the kernel",
                hint="check kernel.printk_devkmsg",
                console=self.console.text(mark.position),
            )

    @property
    def crash(self) -> str:
        """The first crash in the log since the start, "" for none."""
        findings = self.console.findings(self._began)
        found = (each.text for each in findings if each.kind in CRASHES)
        return next(found, "")

    def restart(self, between: Callable[[], object]) -> None:
        """End all actors and start new ones; ``between`` runs while there are none.

        Raises UnkillableProcess, and as wait_ready.
        """
        self.end()
        between()
        self._processes = AgentProcesses(self._log, _ACTORS)
        self.wait_ready()

    def close(self) -> None:
        """End all actors and stop to follow the log.  Idempotent.  Raises UnkillableProcess."""
        try:
            self.end()
        finally:
            self.console.close()

    def end(self) -> None:
        """End all actors.  Idempotent.  Raises UnkillableProcess."""
        processes = self._processes
        if processes is None:
            return
        left = processes.end(Deadline(_END_S, "end of the agent"))
        if left:
            hung = UnkillableProcess(
                f"{left[0]} and cannot be killed",
                hint="reboot; the kernel holds it, and what it uses",
            )
            hung.frames, hung.where = left[0].frames, str(left[0])
            raise hung
        self._processes = None

    def _explained(self, trouble: VmError, since: int) -> VmError:
        """The error to raise instead of one of a call that began at a position of the log."""
        since = min(since, self._marked_at)
        findings = self.console.findings(since)
        crash = next((each for each in findings if each.kind in CRASHES), None)
        explained = GuestCrashed(crash.text) if crash else self._cause(trouble)
        explained.console = self.console.text(since)
        explained.findings = findings
        return explained

    def _cause(self, trouble: VmError) -> VmError:
        if isinstance(trouble, ChannelEnded) and not self._running.alive():
            last = self._log.read_text(errors="replace").strip().splitlines()
            return ChannelBroken("the agent ended" + (f": {last[-1]}" if last else ""))
        if not isinstance(trouble, NoAnswer):
            return trouble
        stuck = self._running.stuck()
        if not stuck:
            return AgentStuck(f"{trouble}: its processes wait for each other")
        if stuck[0].frames or stuck[0].state in _KERNEL_STATES:
            explained = NoAnswer(f"{trouble}: {stuck[0]}")
            explained.frames, explained.where = stuck[0].frames, str(stuck[0])
            return explained
        return trouble
