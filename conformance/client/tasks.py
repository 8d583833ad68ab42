"""Tasks without an interpreter: threads, vfork children, execed programs, 32-bit callers."""

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

# Two pages below 4 GiB for arguments of 32-bit calls.
LOW = 0x1000_0000
# Distance of a task's own words, slots and bytes from those of its maker.
_WORDS_APART, _SLOTS_APART, _ROOM_APART = 12, 100, 1 << 24


class Task(Process):
    """A task; the process that made the first one drives it and must outlive it."""

    def __init__(self, ue: UserEvents, lockstep: Lockstep, actor: str, maker: Process) -> None:
        super().__init__(lockstep, actor)
        self._ue = ue
        self._slots = maker._slots + _SLOTS_APART
        self._words = maker._words + _WORDS_APART
        self._free = maker._free + _ROOM_APART

    def make(self, flags: int) -> Task:
        """clone(2) by this task."""
        return _make(self._ue, self, flags)

    def thread(self) -> Task:
        """clone(2) of a thread."""
        return self.make(THREAD)

    def vfork(self) -> Task:
        """vfork(2): this task continues when the child has exited or called execve(2)."""
        return self.make(VFORK)

    def fork_task(self) -> Task:
        """fork(2)."""
        return self.make(0)

    def cloning(self) -> Clone:
        """fork(2) as a step of a race; ``adopt`` the child afterwards."""
        return Clone(self.actor, self._ue.next_actor(), 0)

    def adopt(self, made: Clone) -> Task:
        """The child of ``cloning``."""
        return _task(self._ue, self, made.child)

    def unwatch(self, actor: str) -> None:
        """Stop comparing the memory of a task that ends."""
        self._lockstep.unwatch(actor)

    def execute(self, path: str = "") -> Observation:
        """execve(2) of a path, or of a program that continues as this task with fresh memory."""
        seen = self.run(tasks.Exec(self.actor, path))
        if seen.ok:
            self._lockstep.unwatch(self.actor)
            self._unwatch_ended()
            self._words = 0
            self.queue(*self.base_mappings())
        return seen

    def end(self) -> Observation:
        """exit(2) of this task only."""
        return self._last(tasks.ExitTask(self.actor))

    def exit(self, status: int = 0) -> Observation:
        """exit_group(2): all threads of this task's process end."""
        return self._last(ops.Exit(self.actor, status))

    def kill(self) -> Observation:
        """SIGKILL to the process of this task."""
        return self._last(tasks.Die(self.actor))

    def _last(self, end: ops.Operation) -> Observation:
        self._lockstep.unwatch(self.actor)
        seen = self.run(end)
        self._unwatch_ended()
        return seen

    def _unwatch_ended(self) -> None:
        """Stop comparing the memory of threads that ended with this task."""
        for actor in self._lockstep.watched:
            if actor not in self._lockstep.model.world.processes:
                self._lockstep.unwatch(actor)

    def keep_over_exec(self, data: DataFile) -> Observation:
        """Clear FD_CLOEXEC of a descriptor."""
        return self.run(tasks.KeepOverExec(self.actor, data.slot))

    # 32-bit calls

    def map_low(self) -> int:
        """Map two pages below 4 GiB; return the address."""
        self.run(ops.Mmap(self.actor, LOW, 2 * PAGE, READ_WRITE, mmap.MAP_PRIVATE))
        return LOW

    def ioctl32(self, slot: int, request: int, argument: int) -> Observation:
        """ioctl(2) through the 32-bit entry."""
        return self.run(compat.Ioctl32(self.actor, slot, request, argument))

    def read32(self, slot: int, count: int) -> Observation:
        """read(2)."""
        return self.run(compat.Read32(self.actor, slot, count))

    def mmap32(
        self, address: int, length: int, protection: int, flags: int, slot: int
    ) -> Observation:
        """mmap2(2) from offset 0 to a free range below 4 GiB."""
        return self.run(compat.Mmap32(self.actor, address, length, protection, flags, slot))

    def write32(self, slot: int, data: bytes) -> Observation:
        """write(2) of bytes that are stored in low memory."""
        self.queue(ops.Store(self.actor, LOW, data))
        return self.run(compat.Write32(self.actor, slot, LOW, len(data)))

    def writev32(self, slot: int, parts: list[bytes]) -> Observation:
        """writev(2) with one 8-byte iovec per part."""
        position = LOW + PAGE
        vector = b""
        for part in parts:
            vector += position.to_bytes(4, "little") + len(part).to_bytes(4, "little")
            if part:
                self.queue(ops.Store(self.actor, position, part))
            position += len(part)
        return self.writev32_at(slot, vector, len(parts))

    def writev32_at(self, slot: int, vector: bytes, count: int) -> Observation:
        """writev(2) with raw iovecs."""
        if vector:
            self.queue(ops.Store(self.actor, LOW, vector))
        return self.run(compat.Writev32(self.actor, slot, LOW, count))


def first_task(ue: UserEvents) -> Task:
    """A task of a fresh driver process."""
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
