"""One machine's dealings with saved states: which it starts from, and whether it makes one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from host.deadline import Deadline
from vm.errors import HostTrouble
from vm.qemu.command_line import MachineSpec
from vm.qemu.console import Console
from vm.qemu.power_cycle import PowerCycle
from vm.qemu.qmp import StillStopped
from vm.snapshots.files import CONSOLE, STATE, Snapshot, Snapshots, snapshot_key
from vm.snapshots.wake_up import wake

#: Seconds on an unhurried machine.
_SAVE = 6.0
_GO_ON = 1.0
BOOTED, RESTORED = "booted", "restored"


class Unusable(HostTrouble):
    """A saved state that is not what was saved, or not what was asked for."""


class SnapshotPolicy:
    """The saved state of one machine's kind: found, restored, made, given up."""

    def __init__(self, spec: MachineSpec, snapshots: Snapshots | None) -> None:
        # A mounted export of the host's files forbids saving.
        self._snapshots = snapshots if spec.root is not None else None
        self._spec = spec
        self._key = ""
        self._snapshot: Snapshot | None = None
        self._descriptor: int | None = None
        self._why = ""

    @property
    def start(self) -> str:
        """How the machine came up, with the reason when it was not as it should be."""
        if self._snapshot is not None:
            return RESTORED
        return f"{BOOTED}: {self._why}" if self._why else BOOTED

    @property
    def restoring(self) -> bool:
        """Whether the machine was started from a saved state."""
        return self._snapshot is not None

    @property
    def wanted(self) -> bool:
        """Whether a state is to be made of a machine that has booted."""
        return self._snapshots is not None and not self._why

    @contextmanager
    def chosen(self, *, cold: bool) -> Iterator[int | None]:
        """The state to start from, opened, while QEMU is started; None for a boot."""
        self.close()
        self._snapshot = None
        if self._snapshots is not None and not cold:
            self._key = self._key or snapshot_key(self._spec)
            self._snapshot = self._snapshots.find(self._key)
        if self._snapshot is not None:
            try:
                # Kept: what is verified has to be what QEMU reads.
                self._descriptor = os.open(self._snapshot.state, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                # Somebody has just removed it.
                self._snapshot = None
        try:
            yield self._descriptor
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of a state that was chosen and not restored.  Idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def boot_console(self) -> str:
        """What the kernel said when it booted, if that is not to be said again."""
        return self._snapshot.boot_console() if self._snapshot else ""

    def restore(self, power: PowerCycle, deadline: Deadline) -> Snapshot:
        """Let the machine go on once its state is verified: which is the one that goes on.

        Raises Unusable, and what monitor and agent raise.
        """
        snapshot = self._snapshot
        assert snapshot is not None
        assert self._descriptor is not None
        try:
            # QEMU is busy starting anyhow.
            if not snapshot.intact(self._descriptor):
                raise Unusable("its content is not what was saved")
        finally:
            self.close()
        power.monitor.resume(deadline.child(deadline.seconds, "resumption"))
        boot_id = wake(power.agent, deadline)
        if boot_id != snapshot.info["boot_id"]:
            raise Unusable(f"the guest in it says {boot_id!r}")
        if list(map(len, snapshot.opening)) != [len(calls) for _, calls in self._spec.opening]:
            raise Unusable("it has not answered what it is asked at its opening")
        power.agent.roster.restore(snapshot.roll)
        return snapshot

    def give_up(self, trouble: Exception) -> None:
        """The state was of no use: remove it, boot, and make no other."""
        self.close()
        if self._snapshots is not None:
            self._snapshots.discard(self._key)
        self._snapshot = None
        self._why = f"the saved state could not be used: {trouble}"

    def save(
        self,
        power: PowerCycle,
        info: Callable[[], dict[str, Any]],
        opening: Sequence[Sequence[dict[str, Any]]],
        console: Console,
    ) -> None:
        """Make a state of a machine that was opened and nothing else, unless somebody else does.

        A machine whose state cannot be saved goes on all the same; StillStopped is raised if it
        does not, and it has to be booted again.  Raises what `info` raises.
        """
        assert self._snapshots is not None
        slowness = self._spec.accelerator.slowness
        try:
            with self._snapshots.making(self._key) as scratch:
                if scratch is None:
                    return
                known = {"info": info(), "roll": power.agent.roster.roll(), "opening": opening}
                (scratch / CONSOLE).write_text(console.text())
                descriptor = os.open(scratch / STATE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    power.monitor.save(
                        descriptor, Deadline(_SAVE * slowness, "saved state"), _GO_ON * slowness
                    )
                finally:
                    os.close(descriptor)
                self._snapshots.publish(self._key, scratch, known)
        except (HostTrouble, OSError) as trouble:
            self._why = f"its state could not be saved: {trouble}"
            if isinstance(trouble, StillStopped):
                raise
