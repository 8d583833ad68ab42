"""A process of a program: its start and end, its data files, and its children."""

from __future__ import annotations

import mmap
import os

from conformance import ops
from conformance.client.addresses import PAGE, READ_WRITE, SCRATCH, SCRATCH_LENGTH, WORDS
from conformance.client.caller import Caller
from conformance.client.data_file import DataFile
from conformance.client.tracefs import DATA
from conformance.ops import Observation


class Process(Caller):
    """A process with its own memory and descriptors."""

    def prepare(self) -> None:
        """Start the process and create its base mappings."""
        self.queue(ops.Spawn(self.actor), *self.base_mappings())

    def base_mappings(self) -> tuple[ops.Operation, ...]:
        """Mappings that the methods of this class use."""
        return (
            ops.Mmap(self.actor, SCRATCH, SCRATCH_LENGTH, READ_WRITE, mmap.MAP_PRIVATE),
            ops.Mmap(self.actor, WORDS, PAGE, READ_WRITE, mmap.MAP_PRIVATE),
        )

    def set_apart(self, number: int) -> None:
        """Use other slots and free memory than relatives of another ``number``.

        By default siblings use the same, also if they share them.
        """
        self._slots += 1000 * number
        self._free += number << 32

    def open_data(self, flags: int = os.O_RDWR) -> DataFile:
        """Open user_events_data."""
        slot = self.free_slot()
        self.queue(ops.Open(self.actor, slot, DATA, flags))
        return DataFile(self, slot)

    def write_pid(self, path: str, flags: int = os.O_WRONLY) -> Observation:
        """Write the process's own pid to a file."""
        return self.run(ops.WritePid(self.actor, path, flags))

    def pin(self, cpu: int) -> Observation:
        """Run on one CPU only, for good."""
        return self.run(ops.Pin(self.actor, cpu))

    def fifo(self) -> Observation:
        """Run before the kernel workers of the CPU, for good."""
        return self.run(ops.Fifo(self.actor))

    def kernel_memory(self) -> int:
        """Memory that the kernel cannot reclaim, in kB."""
        return self.run(ops.KernelMemory(self.actor)).value

    def setuid(self, uid: int = 1000) -> Observation:
        """Become an ordinary user, without capabilities, for good."""
        return self.run(ops.Setuid(self.actor, uid))

    def fork(self, child: str) -> Process:
        """fork(2); memory that is watched in the parent is watched in the child."""
        self.run(ops.Fork(self.actor, child))
        copy = Process(self._lockstep, child)
        copy._slots, copy._words, copy._free = self._slots, self._words, self._free
        for watch in self._lockstep.watches_of(self.actor):
            self._lockstep.watch(child, watch.address, watch.length)
        return copy

    def exit(self, status: int = 0) -> Observation:
        """_exit(2)."""
        self._lockstep.unwatch(self.actor)
        return self.run(ops.Exit(self.actor, status))
