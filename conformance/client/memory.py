"""Memory operations of cases: files in memory, mremap(2), madvise(2)."""

from __future__ import annotations

import mmap

from conformance import ops
from conformance.client.addresses import PAGE, READ_WRITE
from conformance.client.caller import Caller, Descriptor
from conformance.ops import Observation
from conformance.ops.memory import MapDevice, MinorFaults


class MemoryFile(Descriptor):
    """A descriptor of memfd_create(2)."""

    def truncate(self, pages: int) -> Observation:
        """ftruncate(2)."""
        return self.process.run(ops.Truncate(self.process.actor, self.slot, pages * PAGE))

    def map(
        self,
        address: int | None = None,
        *,
        pages: int = 1,
        shared: bool = True,
        protection: int = READ_WRITE,
    ) -> int:
        """mmap(2) from offset 0, by default to a free range; return the address."""
        where = self.process.reserve(pages) if address is None else address
        flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        self.process.run(
            ops.Mmap(self.process.actor, where, pages * PAGE, protection, flags, self.slot)
        )
        return where


def memory_file(process: Caller) -> MemoryFile:
    """Create a file of one zeroed page."""
    file = MemoryFile(process, process.free_slot())
    process.run(ops.MemoryFile(process.actor, file.slot))
    file.truncate(1)
    return file


def move(process: Caller, address: int) -> int:
    """mremap(2) of a page to a free page; return the new address."""
    where = process.reserve(1)
    move_to(process, address, where)
    return where


def move_to(process: Caller, address: int, where: int) -> Observation:
    """mremap(2) of a page to an unmapped page."""
    return process.run(ops.Mremap(process.actor, address, PAGE, where))


def map_device(process: Caller, address: int) -> Observation:
    """Map a page of a device at a free address; do not access it."""
    return process.run(MapDevice(process.actor, address, process.free_slot()))


def minor_faults(process: Caller) -> int:
    """The page faults of a process so far that needed no I/O."""
    return int(process.run(MinorFaults(process.actor)).text)


def discard(process: Caller, address: int) -> Observation:
    """madvise(2) of a page: MADV_DONTNEED."""
    return process.run(ops.Discard(process.actor, address, PAGE))
