"""Tasks without an interpreter: threads, children of vfork, programs, 32-bit callers."""

from __future__ import annotations

import mmap

from conformance import ops
from conformance.client.addresses import PAGE, READ_WRITE
from conformance.client.data_file import DataFile
from conformance.client.lockstep import Lockstep
from conformance.client.process import Process
from conformance.client.user_events import UserEvents
from conformance.ops import Observation, compat, tasks
from conformance.ops.tasks import THREAD, VFORK, Clone

# Where a 32-bit task has what it hands to the kernel: below 4 GiB, two pages.
LOW = 0x1000_0000
# What a task takes for itself begins this far behind what its maker has taken: words, slots
# and bytes.
_WORDS_APART, _SLOTS_APART, _ROOM_APART = 12, 100, 1 << 24


class Task(Process):
    """A task, driven by the process that made the first one, which must outlive it."""

    def __init__(self, ue: UserEvents, lockstep: Lockstep, actor: str, maker: Process) -> None:
        super().__init__(lockstep, actor)
        self._ue = ue
        self._slots = maker._slots + _SLOTS_APART
        self._words = maker._words + _WORDS_APART
        self._free = maker._free + _ROOM_APART

    def make(self, flags: int) -> Task:
        """clone(2) of this task."""
        return _make(self._ue, self, flags)

    def thread(self) -> Task:
        """One more thread of this task's process."""
        return self.make(THREAD)

    def vfork(self) -> Task:
        """vfork(2): this task goes on when its child is gone, or another program."""
        return self.make(VFORK)

    def fork_task(self) -> Task:
        """fork(2)."""
        return self.make(0)

    def cloning(self, flags: int = 0) -> Clone:
        """clone(2), to be done in a race; ``adopt`` the child then."""
        return Clone(self.actor, self._ue.next_actor(), flags)

    def adopt(self, made: Clone) -> Task:
        """The child that was made in a race."""
        return _task(self._ue, self, made.child)

    def unwatch(self, actor: str) -> None:
        """Look at the memory of a task no more: it ends."""
        self._lockstep.unwatch(actor)

    def execute(self, path: str = "") -> Observation:
        """execve(2) of a path, or of a program that goes on as this task, with fresh memory."""
        seen = self.run(tasks.Exec(self.actor, path))
        if seen.ok:
            self._lockstep.unwatch(self.actor)
            self._unwatch_ended()
            self._words = 0
            self.queue(*self.base_mappings())
        return seen

    def end(self) -> Observation:
        """exit(2) of this task alone."""
        return self._last(tasks.ExitTask(self.actor))

    def exit(self, status: int = 0) -> Observation:
        """exit_group(2): all threads of this task's process end."""
        return self._last(ops.Exit(self.actor, status))

    def kill(self) -> Observation:
        """SIGKILL for the process of this task."""
        return self._last(tasks.Die(self.actor))

    def _last(self, end: ops.Operation) -> Observation:
        self._lockstep.unwatch(self.actor)
        seen = self.run(end)
        self._unwatch_ended()
        return seen

    def _unwatch_ended(self) -> None:
        """Nobody looks at the memory of threads that have ended with this task."""
        for actor in self._lockstep.watched:
            if actor not in self._lockstep.model.world.processes:
                self._lockstep.unwatch(actor)

    def keep_over_exec(self, data: DataFile) -> Observation:
        """Let a descriptor stay open over execve(2)."""
        return self.run(tasks.KeepOverExec(self.actor, data.slot))

    # What a 32-bit task does

    def map_low(self) -> int:
        """Two pages below 4 GiB; their address."""
        self.run(ops.Mmap(self.actor, LOW, 2 * PAGE, READ_WRITE, mmap.MAP_PRIVATE))
        return LOW

    def ioctl32(self, slot: int, request: int, argument: int) -> Observation:
        """ioctl(2) through the entry of 32-bit programs."""
        return self.run(compat.Ioctl32(self.actor, slot, request, argument))

    def read32(self, slot: int, count: int) -> Observation:
        """read(2)."""
        return self.run(compat.Read32(self.actor, slot, count))

    def mmap32(
        self, address: int, length: int, protection: int, flags: int, slot: int
    ) -> Observation:
        """mmap2(2) of the beginning of a file, at a free address below 4 GiB."""
        return self.run(compat.Mmap32(self.actor, address, length, protection, flags, slot))

    def write32(self, slot: int, data: bytes) -> Observation:
        """write(2) of bytes that are put into low memory."""
        self.queue(ops.Store(self.actor, LOW, data))
        return self.run(compat.Write32(self.actor, slot, LOW, len(data)))

    def writev32(self, slot: int, parts: list[bytes]) -> Observation:
        """writev(2), each part with an iovec of 8 bytes."""
        position = LOW + PAGE
        vector = b""
        for part in parts:
            vector += position.to_bytes(4, "little") + len(part).to_bytes(4, "little")
            if part:
                self.queue(ops.Store(self.actor, position, part))
            position += len(part)
        return self.writev32_at(slot, vector, len(parts))

    def writev32_at(self, slot: int, vector: bytes, count: int) -> Observation:
        """writev(2) with iovecs as they are given."""
        if vector:
            self.queue(ops.Store(self.actor, LOW, vector))
        return self.run(compat.Writev32(self.actor, slot, LOW, count))


def first_task(ue: UserEvents) -> Task:
    """A process of its own in which nothing has happened; it has no interpreter."""
    driver = Process(ue.lockstep, ue.next_actor())
    driver.queue(tasks.SpawnDriver(driver.actor), *driver.base_mappings())
    return _make(ue, driver, 0)


def _make(ue: UserEvents, maker: Process, flags: int) -> Task:
    child = ue.next_actor()
    ue.lockstep.run(Clone(maker.actor, child, flags))
    return _task(ue, maker, child)


def _task(ue: UserEvents, maker: Process, child: str) -> Task:
    lockstep = ue.lockstep
    for watch in lockstep.watches_of(maker.actor):
        lockstep.watch(child, watch.address, watch.length)
    return Task(ue, lockstep, child, maker)
