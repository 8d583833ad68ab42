"""A process that makes system calls: its memory, its enable words, and its descriptors."""

from __future__ import annotations

import copy
import mmap
import os
from typing import Self

from msgspec import Struct

from conformance import ops
from conformance.abi.profile import Profile
from conformance.client.addresses import (
    FREE,
    GUARD,
    GUARD_LENGTH,
    PAGE,
    READ_WRITE,
    WORD_SPACING,
    WORDS,
    is_guarded,
)
from conformance.client.lockstep import Lockstep
from conformance.ops import Observation

# Limit for deferred kernel work (RCU grace periods, work queues) in seconds of an idle machine;
# references of user_events take longest.
PENDING_WORK_S = 5.0


class Word(Struct, frozen=True):
    """An enable word: its process, address and size in bytes."""

    process: Caller
    address: int
    size: int = 4

    @property
    def value(self) -> int:
        """The current value."""
        return self.process.load_number(self.address, self.size)

    def wait(self) -> int:
        """The value when no kernel work on the word is pending."""
        seen = self.process.eventually(ops.Load(self.process.actor, self.address, self.size))
        return int.from_bytes(seen.data or b"", "little")


class Caller:
    """A process that makes system calls, with its own memory and slots."""

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
        margin = GUARD_LENGTH if is_guarded(address) else 0
        self._lockstep.watch(self.actor, address - margin, size + 2 * margin)
        return Word(self, address, size)

    def map(self, pages: int = 1, *, protection: int = READ_WRITE, shared: bool = False) -> int:
        """Map untouched anonymous memory, followed by an unmapped page; return the address."""
        address = self.reserve(pages)
        flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        self.queue(ops.Mmap(self.actor, address, pages * PAGE, protection, flags))
        return address

    def map_again(self, address: int, *, shared: bool = False) -> Observation:
        """Map an unmapped page again."""
        flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        return self.run(ops.Mmap(self.actor, address, PAGE, READ_WRITE, flags))

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


class Descriptor:
    """A descriptor of a process; each method is one system call."""

    def __init__(self, process: Caller, slot: int) -> None:
        self.process = process
        self.slot = slot

    def of(self, process: Caller) -> Self:
        """The copy of this descriptor in a forked process."""
        inherited = copy.copy(self)
        inherited.process = process
        return inherited

    def write_at(self, address: int, count: int) -> Observation:
        """write(2) of memory at an address."""
        return self.process.run(ops.Write(self.process.actor, self.slot, address, count))

    def ioctl(self, request: int, argument: int = 0) -> Observation:
        """Any ioctl(2)."""
        return self.process.run(ops.Ioctl(self.process.actor, self.slot, request, argument))

    def close(self) -> Observation:
        """close(2)."""
        return self.process.close(self.slot)
