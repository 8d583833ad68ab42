"""Decide for one machine whether to restore a snapshot and whether to save one."""

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
from vm.snapshots import BOOTED, RESTORED
from vm.snapshots.files import CONSOLE, STATE, Snapshot, Snapshots, snapshot_key
from vm.snapshots.wake_up import wake_up

#: Seconds on an idle host with KVM.
_SAVE_S = 6.0
_RESUME_S = 1.0


class Unusable(HostTrouble):
    """A snapshot that is damaged or belongs to another machine."""


class SnapshotPolicy:
    """The snapshot of one machine: find, restore, save, give up."""

    def __init__(self, spec: MachineSpec, snapshots: Snapshots | None) -> None:
        # QEMU cannot save a machine that has mounted a 9p export.
        self._snapshots = snapshots if spec.root is not None else None
        self._spec = spec
        self._key = ""
        self._snapshot: Snapshot | None = None
        self._descriptor: int | None = None
        self._why = ""

    @property
    def start(self) -> str:
        """Either "restored", or "booted" with the reason if restoring or saving failed."""
        if self._snapshot is not None:
            return RESTORED
        return f"{BOOTED}: {self._why}" if self._why else BOOTED

    @property
    def restoring(self) -> bool:
        """Whether the machine was started from a snapshot."""
        return self._snapshot is not None

    @property
    def should_save(self) -> bool:
        """Whether to save a snapshot of a machine that has booted."""
        return self._snapshots is not None and not self._why

    @contextmanager
    def chosen(self, *, cold: bool) -> Iterator[int | None]:
        """Open the snapshot to start QEMU from; None for a boot."""
        self.close()
        self._snapshot = None
        if self._snapshots is not None and not cold:
            self._key = self._key or snapshot_key(self._spec)
            self._snapshot = self._snapshots.find(self._key)
        if self._snapshot is not None:
            try:
                # Stays open: the file verified later must be the one that QEMU reads.
                self._descriptor = os.open(self._snapshot.state, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                # Another process has just removed it.
                self._snapshot = None
        try:
            yield self._descriptor
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close a chosen snapshot that was not restored.  Idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def boot_console(self) -> str:
        """The console output of the boot that the chosen snapshot replaces."""
        return self._snapshot.boot_console() if self._snapshot else ""

    def restore(self, power: PowerCycle, deadline: Deadline) -> Snapshot:
        """Verify the chosen snapshot, resume the guest and identify it.

        Raises Unusable, and what the monitor and the agent raise.
        """
        snapshot = self._snapshot
        assert snapshot is not None
        assert self._descriptor is not None
        try:
            # QEMU is still starting, so this takes no extra time.
            if not snapshot.intact(self._descriptor):
                raise Unusable("its checksum is wrong")
        finally:
            self.close()
        power.monitor.resume(deadline.child(deadline.seconds, "resumption"))
        boot_id = wake_up(power.agent, deadline)
        if boot_id != snapshot.info["boot_id"]:
            raise Unusable(f"its guest has boot id {boot_id!r}")
        if list(map(len, snapshot.opening)) != [len(calls) for _, calls in self._spec.opening]:
            raise Unusable("it lacks results of the opening requests")
        power.agent.roster.restore(snapshot.actors)
        return snapshot

    def give_up(self, trouble: Exception) -> None:
        """Remove an unusable snapshot; the machine will boot and save none."""
        self.close()
        if self._snapshots is not None:
            self._snapshots.discard(self._key)
        self._snapshot = None
        self._why = f"the snapshot could not be used: {trouble}"

    def save(
        self,
        power: PowerCycle,
        info: Callable[[], dict[str, Any]],
        opening: Sequence[Sequence[dict[str, Any]]],
        console: Console,
    ) -> None:
        """Save a snapshot unless another process does; `opening` are the first results.

        A failure is only recorded in `start`, except that StillStopped is raised if the guest did
        not resume.  Raises what `info` raises.
        """
        assert self._snapshots is not None
        slowness = self._spec.accelerator.slowness
        try:
            with self._snapshots.claimed(self._key) as scratch:
                if scratch is None:
                    return
                record = {
                    "info": info(),
                    "actors": power.agent.roster.as_record(),
                    "opening": opening,
                }
                (scratch / CONSOLE).write_text(console.text())
                descriptor = os.open(scratch / STATE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    deadline = Deadline(_SAVE_S * slowness, "snapshot")
                    power.monitor.save(descriptor, deadline, _RESUME_S * slowness)
                finally:
                    os.close(descriptor)
                self._snapshots.publish(self._key, scratch, record)
        except (HostTrouble, OSError) as trouble:
            self._why = f"the snapshot could not be saved: {trouble}"
            if isinstance(trouble, StillStopped):
                raise
