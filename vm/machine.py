"""A booted machine: calls to its actors, its console, and the truth about how it ended."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from host.deadline import Deadline
from host.kernel_reports import CRASHES
from vm.errors import (
    ActorDied,
    ChannelBroken,
    NoAnswer,
    VmError,
)
from vm.kernel_log.lines import MARK_PREFIX
from vm.postmortem.explain import PostMortem, check_space
from vm.qemu import guest_files
from vm.qemu.command_line import MachineSpec, Request
from vm.qemu.console import Console
from vm.qemu.power_cycle import PowerCycle
from vm.qemu.process import CpuTime
from vm.qemu.qmp import StillStopped
from vm.snapshots.files import Snapshots
from vm.snapshots.policy import SnapshotPolicy

__all__ = ["Machine", "MachineSpec"]

#: Default limits, seconds on an unhurried machine; see Machine.deadline.
_CALL = 4.0
_HEALTH = 1.0
_MARK = 1.0
_BOOT = 12.0
#: What an answer to a ping takes at most where nothing else runs, and how often it is measured;
#: beyond so many times longer nothing is scaled.
_PING = 0.0004
#: So old may be what is known of QEMU's shares when something begins, seconds.
_SHARES_S = 1.0
_PINGS = 3
_SLOWEST = 8.0


@dataclass(frozen=True, slots=True)
class Mark:
    """A line written to the guest's log, and the position on the console before it."""

    line: str
    position: int


class Machine:
    """One guest.  Use as a context manager, or close it: nothing of it is left then.

    It needs `directory` for console.log and qemu.log, and leaves nothing else behind.  With
    `snapshots` it goes on from a saved state where there is one, and else makes it for the next.
    """

    def __init__(
        self, spec: MachineSpec, directory: Path, snapshots: Snapshots | None = None
    ) -> None:
        self.spec = spec
        self.directory = directory
        self.console = Console(directory / "console.log")
        self._snapshots = snapshots
        self._policy = SnapshotPolicy(spec, snapshots)
        self._power: Power | None = None
        self._booted_at = 0
        #: Where the last mark is, or it became ready: what is said between two calls counts too.
        self._marked_at = 0
        #: Where on the console it was ready, before it was asked anything.
        self.ready_at = 0
        #: What it was asked at its opening (MachineSpec), and has answered.
        self.opened: list[tuple[Request, Sequence[dict[str, Any]]]] = []
        #: What QEMU had got of the host when it was started, and at a mark not long ago.
        self._booting = CpuTime(0.0, {})
        self._shares: CpuTime | None = None
        self._pace = 1.0
        self._marks = 0
        self._info: dict[str, Any] | None = None

    @classmethod
    def boot(
        cls,
        spec: MachineSpec,
        *,
        directory: Path,
        deadline: Deadline,
        snapshots: Snapshots | None = None,
    ) -> Machine:
        """Start QEMU and wait for the agent.

        Raises HostTrouble (QemuMissing, QemuDied, DiskFull, BootFailed …).
        """
        machine = cls.launch(spec, directory=directory, snapshots=snapshots)
        machine.wait_ready(deadline)
        return machine

    @classmethod
    def launch(
        cls, spec: MachineSpec, *, directory: Path, snapshots: Snapshots | None = None
    ) -> Machine:
        """Start QEMU and return at once; `wait_ready` must come before anything is asked.

        Raises HostTrouble as boot.
        """
        machine = cls(spec, directory, snapshots)
        machine._start()
        return machine

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id of QEMU, None when closed."""
        return self._power.qemu.pid if self._power else None

    @property
    def start(self) -> str:
        """How it came up: "restored", or "booted" and why it was not restored, if anything."""
        return self._policy.start

    @property
    def info(self) -> dict[str, Any]:
        """What the guest knows of itself: release, cmdline, config, tainted, nproc …"""
        if self._info is None:
            (result,) = self.call("", [["info"]])
            self._info = json.loads(bytes.fromhex(result["data"]))
        return self._info

    @property
    def slowness(self) -> float:
        """How many times longer things take here than on an unhurried machine with KVM.

        What is known of the accelerator, and more where this guest was seen to be slower.
        """
        return self.spec.accelerator.slowness * self._pace

    def deadline(self, seconds: float, what: str) -> Deadline:
        """A deadline of so many seconds on an unhurried machine, scaled to this one."""
        basis = f"{seconds:g} s x {self.slowness:.3g} for {self.spec.accelerator.name}"
        return Deadline(seconds * self.slowness, what, basis)

    def answer(self, actor: str) -> Deadline:
        """What an actor has for an answer where nothing else is said."""
        return self.deadline(_CALL, f"answer from actor {actor!r}")

    def call(
        self,
        actor: str,
        calls: Sequence[Sequence[object]],
        watch: Sequence[Sequence[object]] = (),
        *,
        deadline: Deadline | None = None,
    ) -> list[dict[str, Any]]:
        """Perform calls in an actor ("" is the supervisor): one result per call (vm.agent.agent).

        A result has value and errno (0 unless the kernel refused), data (hexadecimal or None) and
        watch (one for each place watched).
        Raises GuestCrashed, QemuDied, ChannelBroken, NoAnswer, ActorDied or CallRefused, with what
        the console said since the call began.
        """
        since = self.console.position()
        if self._power is None:
            raise ChannelBroken("the machine is closed")
        if deadline is None:
            deadline = self.answer(actor)
        try:
            return self._power.agent.call(actor, calls, watch, deadline)
        except (ActorDied, ChannelBroken, NoAnswer) as trouble:
            raise self._post_mortem(self._power).call(trouble, since) from trouble

    def mark(self, text: str) -> Mark:
        """Write a line to the guest's log, as a sign that it answers.

        `check` says later whether the line arrived on the console: waiting for it here would
        hold up what comes next.  Raises what `call` raises.
        """
        self._marks += 1
        line = f"{MARK_PREFIX}{self._marks} {text}".replace("\n", " ")
        since = self.console.position()
        (result,) = self.call("", [["mark", line]])
        if result["errno"]:
            raise ChannelBroken(f"the guest could not write the mark {line!r}")
        self._marked_at = since
        before = self._shares or self._booting
        if self._power is not None and time.monotonic() > before.when + _SHARES_S:
            self._shares = self._power.qemu.cpu_time()
        return Mark(line, since)

    def check(self, mark: Mark) -> None:
        """Raise DiskFull or ChannelBroken unless a mark is on the console."""
        if self.console.has(mark.line, mark.position):
            return
        arrived = self.console.wait_for(
            re.escape(mark.line),
            self.deadline(_MARK, "mark on the console"),
            since=mark.position,
            alive=self._alive,
        )
        if not arrived:
            check_space(self.directory)
            raise ChannelBroken(
                f"mark {mark.line!r} never came out on the console",
                console=self.console.text(mark.position),
            )

    def healthy(self) -> bool:
        """Whether the agent answers a ping at once and nothing fatal is on the console."""
        if self._power is None:
            return False
        try:
            self._ping(self._power)
        except VmError:
            return False
        return not any(found.kind in CRASHES for found in self.console.findings(self._booted_at))

    def pristine(self, cpus: int | None = None) -> None:
        """Give this machine a kernel with nothing in it; every actor is gone.  Raises as boot.

        It has as many processors as before, or ``cpus``.
        """
        self._stop()
        if cpus not in (None, self.spec.cpus):
            self.spec = replace(self.spec, cpus=cpus or 1)
            self._policy = SnapshotPolicy(self.spec, self._snapshots)
        self._start()
        self.wait_ready(self.deadline(_BOOT, "agent after a reboot"))

    def close(self) -> None:
        """End the guest at once: nothing in it needs saving.  Idempotent."""
        self._stop()

    def leave(self) -> None:
        """Leave a machine that was launched to a process that was forked since.

        Only the one that launched it has to close it still: it reaps it then.
        """
        if self._power is not None:
            self._power.leave()
        self._policy.close()

    def _start(self, *, cold: bool = False) -> None:
        check_space(self.directory)
        guest_files.compile_agent()
        self._info = None
        with self._policy.chosen(cold=cold) as state:
            self.console.append(self._policy.boot_console())
            self._booted_at = self._marked_at = self.console.position()
            self._power = PowerCycle.on(
                self.spec,
                console=self.console.path,
                log=self.directory / "qemu.log",
                state=state,
            )
            self._booting, self._shares = self._power.qemu.cpu_time(), None

    def wait_ready(self, deadline: Deadline) -> None:
        """Wait for the agent of a machine that was launched.  Raises as boot."""
        if self._power is None:
            raise ChannelBroken("the machine is closed")
        try:
            if self._policy.restoring and not self._restored(self._power, deadline):
                self._start(cold=True)
            if not self._policy.restoring:
                self._booted(self._power, deadline)
                self._open()
                if self._policy.wanted and not self._saved(self._power):
                    self._start(cold=True)
                    self._booted(self._power, self.deadline(_BOOT, "agent after another boot"))
                    self._open()
            self._pace = self._measured(self._power)
        except BaseException:
            self._stop()
            raise

    def _measured(self, power: PowerCycle) -> float:
        """How many times slower than its accelerator should be this guest answers, at least 1."""
        took = []
        for _ in range(_PINGS):
            began = time.monotonic()
            self._ping(power)
            took.append(time.monotonic() - began)
        return min(max(1.0, min(took) / (_PING * self.spec.accelerator.slowness)), _SLOWEST)

    def _ping(self, power: PowerCycle) -> None:
        power.agent.call("", [["ping"]], (), self.deadline(_HEALTH, "answer to a ping"))

    def _restored(self, power: PowerCycle, deadline: Deadline) -> bool:
        """Whether the machine goes on from the saved state; it is off if not."""
        try:
            # A boot in its place needs time as well.
            state = self._policy.restore(power, deadline.child(deadline.seconds / 2, deadline.what))
            self._info = state.info
            self.opened = list(zip(self.spec.opening, state.opening, strict=True))
            self._ready()
        except (VmError, OSError, ValueError, KeyError, TypeError) as trouble:
            # Of the last three is a record, or an answer, that is none of ours.
            self._stop()
            self._policy.give_up(trouble)
        return self._policy.restoring

    def _booted(self, power: PowerCycle, deadline: Deadline) -> None:
        try:
            power.agent.hello(deadline)
        except (ChannelBroken, NoAnswer) as trouble:
            raise self._post_mortem(power).boot(trouble) from trouble
        self._ready()

    def _ready(self) -> None:
        """What it says from here on is of the call that finds it so."""
        self.ready_at = self._marked_at = self.console.position()

    def _open(self) -> None:
        self.opened = [(request, self.call(*request)) for request in self.spec.opening]

    def _saved(self, power: PowerCycle) -> bool:
        """Whether the machine goes on after its state was saved, or was not; it is off if not.

        It is not where the kernel has reported something since it was ready: whoever went on from
        it would not be told.
        """
        if self.console.findings(self.ready_at):
            return True
        try:
            answers = [answered for _, answered in self.opened]
            self._policy.save(power, lambda: self.info, answers, self.console)
        except StillStopped:
            self._stop()
            return False
        return True

    def _stop(self) -> None:
        power, self._power = self._power, None
        try:
            if power is not None:
                power.off()
        finally:
            self._policy.close()

    def _post_mortem(self, power: PowerCycle) -> PostMortem:
        """Where to find out what went wrong."""
        return PostMortem(
            self.spec,
            self.console,
            power,
            self._shares or self._booting,
            booted_at=self._booted_at,
            marked_at=self._marked_at,
            slowness=self.slowness,
        )

    def _alive(self) -> bool:
        return self._power is not None and self._power.qemu.alive()
