"""Descriptors of files in tracefs: read, write, seek and map."""

from __future__ import annotations

import copy
import mmap
import os

from conformance import ops
from conformance.client.addresses import PAGE
from conformance.client.process import Process
from conformance.ops import Observation


class File:
    """An open descriptor; each method is one system call."""

    def __init__(self, process: Process, path: str, flags: int = os.O_RDONLY) -> None:
        self.opened, self._slot = process.open(path, flags)
        self._process = process

    def of(self, process: Process) -> File:
        """The copy of this descriptor in a forked process."""
        inherited = copy.copy(self)
        inherited._process = process
        return inherited

    def read(self, count: int = PAGE) -> Observation:
        """read(2) of at most ``count`` bytes."""
        return self._process.run(ops.Read(self._process.actor, self._slot, count))

    def write(self, data: bytes) -> Observation:
        """write(2) of raw bytes."""
        actor = self._process.actor
        buffer = self._process.map(len(data) // PAGE + 1)
        return self._process.run(
            ops.Store(actor, buffer, data), ops.Write(actor, self._slot, buffer, len(data))
        )

    def write_at(self, address: int, count: int) -> Observation:
        """write(2) of memory at an address."""
        return self._process.run(ops.Write(self._process.actor, self._slot, address, count))

    def lseek(self, offset: int, whence: int = os.SEEK_SET) -> Observation:
        """lseek(2)."""
        return self._process.run(ops.Lseek(self._process.actor, self._slot, offset, whence))

    def map(self, protection: int = mmap.PROT_READ, flags: int = mmap.MAP_SHARED) -> Observation:
        """mmap(2) of the first page to a free page."""
        address = self._process.map()
        self._process.unmap(address)
        actor = self._process.actor
        return self._process.run(ops.Mmap(actor, address, PAGE, protection, flags, self._slot))
