"""One guest: boot it, perform calls in its actors, check its health."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from host.deadline import Deadline
from vm.agent.channel import ChannelEnded
from vm.errors import ActorDied, ChannelBroken, NoAnswer, VmError
from vm.kernel_log.lines import MARK_PREFIX, Mark
from vm.postmortem.explain import PostMortem, check_space
from vm.qemu import guest_files
from vm.qemu.command_line import Export, MachineSpec, Request
from vm.qemu.console import Console
from vm.qemu.power_cycle import PowerCycle
from vm.qemu.process import CpuTime
from vm.qemu.qmp import StillStopped
from vm.snapshots.files import Snapshots
from vm.snapshots.policy import SnapshotPolicy

__all__ = ["Machine", "MachineSpec"]

#: Default limits in seconds on an idle host with KVM; `Machine.deadline` scales them.
_CALL_S = 4.0
_PING_S = 1.0
_MARK_S = 1.0
_BOOT_S = 12.0
#: Duration of a ping on an idle host with KVM, in seconds; number of pings that measure the actual
#: duration; and the largest factor that they add to the slowness.
_EXPECTED_PING_S = 0.0004
_PINGS = 3
_MAX_PACE = 8.0
#: Maximum age in seconds of the recorded CPU time of QEMU when a call starts.
_CPU_TIME_AGE_S = 1.0


class Machine:
    """One guest, as a context manager.  Closing it leaves no process behind.

    `directory` receives console.log and qemu.log.  With `snapshots` the guest is restored from a
    snapshot if there is one; otherwise it boots and its state is saved.
    """

    def __init__(
        self, spec: MachineSpec, directory: Path, snapshots: Snapshots | None = None
    ) -> None:
        self.spec = spec
        self.directory = directory
        self.console = Console(directory / "console.log")
        self._snapshots = snapshots
        self._policy = SnapshotPolicy(spec, snapshots)
        self._power: PowerCycle | None = None
        #: Console positions: the start of the boot, and the last mark (or the end of the boot).
        #: Console output between two calls belongs to the second one.
        self._booted_at = 0
        self._marked_at = 0
        #: Console position at the end of the boot, before the first call.
        self.ready_at = 0
        #: Requests of `MachineSpec.opening` and their results.
        self.opened: list[tuple[Request, Sequence[dict[str, Any]]]] = []
        #: CPU time of QEMU at its start, and at a recent mark.
        self._cpu_time_at_start = CpuTime(0.0, {})
        self._cpu_time: CpuTime | None = None
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
        """Start QEMU without waiting; call `wait_ready` before the first call.

        Raises HostTrouble as boot.
        """
        machine = cls(spec, directory, snapshots)
        machine._start()
        return machine

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id of QEMU, None when closed."""
        return self._power.qemu.pid if self._power else None

    @property
    def start(self) -> str:
        """Either "restored", or "booted" with the reason if restoring or saving failed."""
        return self._policy.start

    @property
    def info(self) -> dict[str, Any]:
        """Facts reported by the guest: release, config, boot_id and nproc."""
        if self._info is None:
            (result,) = self.call("", [["info"]])
            self._info = json.loads(bytes.fromhex(result["data"]))
        return self._info

    @property
    def slowness(self) -> float:
        """Factor by which this guest is slower than one with KVM on an idle host.

        The accelerator's factor times the measured one.
        """
        return self.spec.accelerator.slowness * self._pace

    def deadline(self, seconds: float, what: str) -> Deadline:
        """A deadline of `seconds` on an idle host with KVM, scaled to this guest."""
        basis = f"{seconds:g} s x {self.slowness:.3g} for {self.spec.accelerator.name}"
        return Deadline(seconds * self.slowness, what, basis)

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
        """Perform calls in an actor ("" is the supervisor): one result per call (vm.agent.agent).

        A result has value and errno (0 if the kernel returned no error), data (hexadecimal or None)
        and watch (one item per watched place).
        Raises GuestCrashed, QemuDied, ChannelBroken, NoAnswer, ActorDied or CallRefused, with the
        console output since the start of the call.
        """
        since = self.console.position()
        if self._power is None:
            raise ChannelBroken("the machine is closed")
        if deadline is None:
            deadline = self.call_deadline(actor)
        try:
            return self._power.agent.call(actor, calls, watch, deadline)
        except (ActorDied, ChannelBroken, NoAnswer) as trouble:
            raise self._post_mortem(self._power).explain_call(trouble, since) from trouble

    def stream(self, number: int) -> socket.socket:
        """Our end of a stream port (MachineSpec.streams).  Raises ChannelBroken."""
        if self._power is None:
            raise ChannelBroken("the machine is closed")
        return self._power.streams[number]

    def stream_ended(self, since: int) -> VmError:
        """Why a stream has ended that was in use since a position of the console."""
        ended = ChannelEnded("a stream ended")
        if self._power is None:
            return ended
        return self._post_mortem(self._power).explain_call(ended, since)

    def mark(self, text: str) -> Mark:
        """Write a line to the guest's log.  Raises as call.

        `check` verifies later that the line reached the console; waiting for it here would delay
        the next call.
        """
        self._marks += 1
        line = f"{MARK_PREFIX}{self._marks} {text}".replace("\n", " ")
        since = self.console.position()
        (result,) = self.call("", [["mark", line]])
        if result["errno"]:
            raise ChannelBroken(f"the guest could not write the mark {line!r}")
        self._marked_at = since
        known = self._cpu_time or self._cpu_time_at_start
        if self._power is not None and time.monotonic() > known.when + _CPU_TIME_AGE_S:
            self._cpu_time = self._power.qemu.cpu_time()
        return Mark(line, since)

    def check(self, mark: Mark) -> None:
        """Raise DiskFull or ChannelBroken unless a mark is on the console."""
        if self.console.has(mark.line, mark.position):
            return
        arrived = self.console.wait_for(
            re.escape(mark.line),
            self.deadline(_MARK_S, "mark on the console"),
            since=mark.position,
            alive=self._alive,
        )
        if not arrived:
            check_space(self.directory)
            raise ChannelBroken(
                f"mark {mark.line!r} did not appear on the console",
                console=self.console.text(mark.position),
            )

    def pristine(self, cpus: int | None = None, exports: tuple[Export, ...] | None = None) -> None:
        """Restart the guest, with `cpus` processors and `exports` if given.  All actors are gone.

        Raises as boot.
        """
        self._stop()
        cpus = self.spec.cpus if cpus is None else cpus
        exports = self.spec.exports if exports is None else exports
        if (cpus, exports) != (self.spec.cpus, self.spec.exports):
            self.spec = replace(self.spec, cpus=cpus, exports=exports)
            self._policy = SnapshotPolicy(self.spec, self._snapshots)
        self._start()
        self.wait_ready(self.deadline(_BOOT_S, "agent after a reboot"))

    def close(self) -> None:
        """Kill the guest.  Idempotent."""
        self._stop()

    def hand_over(self) -> None:
        """Drop the channels of a launched machine that a forked child uses from now on.

        The launching process must still call `close`, which reaps QEMU.
        """
        if self._power is not None:
            self._power.close_channels()
        self._policy.close()

    def wait_ready(self, deadline: Deadline) -> None:
        """Wait for the agent of a launched machine.  Raises as boot."""
        if self._power is None:
            raise ChannelBroken("the machine is closed")
        try:
            if self._policy.restoring and not self._restored(self._power, deadline):
                self._start(cold=True)
            if not self._policy.restoring:
                self._boot_and_save(self._power, deadline)
            self._pace = self._measured_pace(self._power)
        except BaseException:
            self._stop()
            raise

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
            self._cpu_time_at_start, self._cpu_time = self._power.qemu.cpu_time(), None

    def _restored(self, power: PowerCycle, deadline: Deadline) -> bool:
        """Whether the snapshot could be restored; the machine is off if not."""
        try:
            # Leave half of the time for a boot.
            half = deadline.child(deadline.seconds / 2, deadline.what)
            snapshot = self._policy.restore(power, half)
            self._info = snapshot.info
            self.opened = list(zip(self.spec.opening, snapshot.opening, strict=True))
            self._set_ready()
        except (VmError, OSError, ValueError, KeyError, TypeError) as trouble:
            # The last three: the record of the snapshot, or the agent's answer, is malformed.
            self._stop()
            self._policy.give_up(trouble)
        return self._policy.restoring

    def _boot_and_save(self, power: PowerCycle, deadline: Deadline) -> None:
        self._boot(power, deadline)
        if self._policy.should_save and not self._saved(power):
            self._start(cold=True)
            assert self._power is not None
            self._boot(self._power, self.deadline(_BOOT_S, "agent after another boot"))

    def _boot(self, power: PowerCycle, deadline: Deadline) -> None:
        try:
            power.agent.hello(deadline)
        except (ChannelBroken, NoAnswer) as trouble:
            raise self._post_mortem(power).explain_boot(trouble) from trouble
        self._set_ready()
        self.opened = [(request, self.call(*request)) for request in self.spec.opening]

    def _set_ready(self) -> None:
        self.ready_at = self._marked_at = self.console.position()

    def _saved(self, power: PowerCycle) -> bool:
        """Save a snapshot if possible; False if the guest did not resume and is off.

        No snapshot is saved if the kernel has reported something since the boot: the guests
        restored from it would not see the report.
        """
        if self.console.findings(self.ready_at):
            return True
        try:
            results = [results for _, results in self.opened]
            self._policy.save(power, lambda: self.info, results, self.console)
        except StillStopped:
            self._stop()
            return False
        return True

    def _measured_pace(self, power: PowerCycle) -> float:
        """How many times slower this guest answers than its accelerator should, at least 1."""
        durations = []
        for _ in range(_PINGS):
            began = time.monotonic()
            self._ping(power)
            durations.append(time.monotonic() - began)
        expected = _EXPECTED_PING_S * self.spec.accelerator.slowness
        return min(max(1.0, min(durations) / expected), _MAX_PACE)

    def _ping(self, power: PowerCycle) -> None:
        power.agent.call("", [["ping"]], (), self.deadline(_PING_S, "answer to a ping"))

    def _stop(self) -> None:
        power, self._power = self._power, None
        try:
            if power is not None:
                power.off()
        finally:
            self._policy.close()

    def _post_mortem(self, power: PowerCycle) -> PostMortem:
        return PostMortem(
            self.spec,
            self.console,
            power,
            self._cpu_time or self._cpu_time_at_start,
            booted_at=self._booted_at,
            marked_at=self._marked_at,
            slowness=self.slowness,
        )

    def _alive(self) -> bool:
        return self._power is not None and self._power.qemu.alive()
