"""Descriptors of files in tracefs: read, write, seek and map."""

from __future__ import annotations

import mmap
import os

from conformance import ops
from conformance.client.addresses import PAGE
from conformance.client.caller import Caller, Descriptor
from conformance.ops import Observation


class File(Descriptor):
    """An open file."""

    def __init__(self, process: Caller, path: str, flags: int = os.O_RDONLY) -> None:
        self.opened, slot = process.open(path, flags)
        super().__init__(process, slot)

    def read(self, count: int = PAGE) -> Observation:
        """read(2) of at most ``count`` bytes."""
        return self.process.run(ops.Read(self.process.actor, self.slot, count))

    def write(self, data: bytes) -> Observation:
        """write(2) of raw bytes."""
        actor = self.process.actor
        buffer = self.process.map(len(data) // PAGE + 1)
        return self.process.run(
            ops.Store(actor, buffer, data), ops.Write(actor, self.slot, buffer, len(data))
        )

    def lseek(self, offset: int, whence: int = os.SEEK_SET) -> Observation:
        """lseek(2)."""
        return self.process.run(ops.Lseek(self.process.actor, self.slot, offset, whence))

    def map(self, protection: int = mmap.PROT_READ, flags: int = mmap.MAP_SHARED) -> Observation:
        """mmap(2) of the first page to a free page."""
        address = self.process.map()
        self.process.unmap(address)
        actor = self.process.actor
        return self.process.run(ops.Mmap(actor, address, PAGE, protection, flags, self.slot))
