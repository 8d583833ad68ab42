"""A process of a program: memory, descriptors, fork and exit."""

from __future__ import annotations

import mmap
import os

from conformance import ops
from conformance.abi.profile import Profile
from conformance.client.addresses import (
    FREE,
    GUARD,
    GUARD_LENGTH,
    PAGE,
    READ_WRITE,
    SCRATCH,
    SCRATCH_LENGTH,
    WORD_SPACING,
    WORDS,
)
from conformance.client.data_file import DataFile, Word
from conformance.client.lockstep import Lockstep
from conformance.client.tracefs import DATA
from conformance.ops import Observation

# Limit for deferred kernel work (RCU grace periods, work queues) in seconds of an idle machine;
# references of user_events take longest.
PENDING_WORK_S = 5.0


class Process:
    """A process with its own memory and descriptors."""

    def __init__(self, lockstep: Lockstep, actor: str) -> None:
        self.actor = actor
        self._lockstep = lockstep
        self._slots = 3
        self._words = 0
        self._free = FREE

    @property
    def profile(self) -> Profile:
        """The ABI profile of the kernel."""
        return self._lockstep.model.profile

    def run_all(self, *program: ops.Operation) -> list[Observation]:
        """Run operations of this process; one observation each."""
        return self._lockstep.run(*program)

    def run(self, *program: ops.Operation) -> Observation:
        """Run operations of this process; the observation of the last."""
        return self._lockstep.run(*program)[-1]

    def queue(self, *program: ops.Operation) -> None:
        """Run operations in one batch with the next ones."""
        self._lockstep.queue(*program)

    def eventually(self, operation: ops.Operation) -> Observation:
        """Repeat an operation until no pending work changes its answer."""
        return self._lockstep.eventually(operation, PENDING_WORK_S)

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

    def free_slot(self) -> int:
        """An unused slot."""
        self._slots += 1
        return self._slots

    def open(self, path: str, flags: int = os.O_RDWR) -> tuple[Observation, int]:
        """open(2) of a path; return observation and slot."""
        slot = self.free_slot()
        return self.run(ops.Open(self.actor, slot, path, flags)), slot

    def close(self, slot: int) -> Observation:
        """close(2)."""
        return self.run(ops.Close(self.actor, slot))

    def open_data(self, flags: int = os.O_RDWR) -> DataFile:
        """Open user_events_data."""
        slot = self.free_slot()
        self.queue(ops.Open(self.actor, slot, DATA, flags))
        return DataFile(self, slot)

    @property
    def words_left(self) -> int:
        """The number of words that ``word`` still has room for."""
        return PAGE // WORD_SPACING - 2 - self._words

    def word(self, size: int = 4, *, value: int = 0, offset: int = 0) -> Word:
        """A fresh enable word in present memory, watched together with its guards.

        ``size`` in bytes; ``offset`` is added to a 64-byte aligned address; ``value`` is the
        initial content.
        """
        self._words += 1
        address = WORDS + self._words * WORD_SPACING + offset
        if address + size + GUARD_LENGTH > WORDS + PAGE:
            raise ValueError("no room for more than 62 words: map memory for further ones")
        guard = bytes([GUARD]) * GUARD_LENGTH
        content = guard + value.to_bytes(size, "little") + guard
        self.queue(ops.Store(self.actor, address - GUARD_LENGTH, content))
        return self.word_at(address, size, value=None)

    def word_at(self, address: int, size: int = 4, *, value: int | None = 0) -> Word:
        """A word at a given address; stored unless ``value`` is None."""
        if value is not None:
            self.queue(ops.Store(self.actor, address, value.to_bytes(size, "little")))
        guarded = WORDS <= address < WORDS + PAGE
        margin = GUARD_LENGTH if guarded else 0
        self._lockstep.watch(self.actor, address - margin, size + 2 * margin)
        return Word(self, address, size)

    def map(self, pages: int = 1, *, protection: int = READ_WRITE, shared: bool = False) -> int:
        """Map untouched anonymous memory, followed by an unmapped page; return the address."""
        address = self.reserve(pages)
        flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        self.queue(ops.Mmap(self.actor, address, pages * PAGE, protection, flags))
        return address

    def map_again(self, address: int, pages: int = 1, *, shared: bool = False) -> Observation:
        """Map an unmapped range again."""
        flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        return self.run(ops.Mmap(self.actor, address, pages * PAGE, READ_WRITE, flags))

    def map_status(
        self,
        file: int,
        *,
        length: int = PAGE,
        protection: int = mmap.PROT_READ,
        shared: bool = True,
        offset: int = 0,
    ) -> tuple[Observation, int]:
        """mmap(2) of user_events_status; return observation and address."""
        address = self._free
        self._free += (length // PAGE + 2) * PAGE
        flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        seen = self.run(ops.Mmap(self.actor, address, length, protection, flags, file, offset))
        return seen, address

    def reserve(self, pages: int) -> int:
        """Reserve a free address range, followed by an unmapped page; return the address."""
        address = self._free
        self._free += (pages + 1) * PAGE
        return address

    def write_pid(self, path: str, flags: int = os.O_WRONLY) -> Observation:
        """Write the process's own pid to a file."""
        return self.run(ops.WritePid(self.actor, path, flags))

    def pin(self, cpu: int = 0) -> Observation:
        """Run on one CPU only, for good."""
        return self.run(ops.Pin(self.actor, cpu))

    def fifo(self) -> Observation:
        """Run before the kernel workers of the CPU, for good."""
        return self.run(ops.Fifo(self.actor))

    def kernel_memory(self) -> int:
        """Memory that the kernel cannot reclaim, in kB."""
        return self.run(ops.KernelMemory(self.actor)).value

    def place(self, data: bytes) -> int:
        """Store bytes at the end of a fresh mapping, before an unmapped page; return the
        address.
        """
        pages = (len(data) + PAGE - 1) // PAGE or 1
        address = self.map(pages) + pages * PAGE - len(data)
        self.queue(ops.Store(self.actor, address, data))
        return address

    def unmap(self, address: int, pages: int = 1) -> Observation:
        """munmap(2) of whole pages."""
        return self.run(ops.Munmap(self.actor, address, pages * PAGE))

    def protect(self, address: int, protection: int, pages: int = 1) -> Observation:
        """mprotect(2) of whole pages."""
        return self.run(ops.Mprotect(self.actor, address, pages * PAGE, protection))

    def store(self, address: int, data: bytes) -> Observation:
        """Write memory."""
        return self.run(ops.Store(self.actor, address, data))

    def load(self, address: int, length: int) -> Observation:
        """Read memory."""
        return self.run(ops.Load(self.actor, address, length))

    def load_number(self, address: int, size: int) -> int:
        """Read an unsigned number of ``size`` bytes."""
        return int.from_bytes(self.load(address, size).data or b"", "little")

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
