"""The status page, up to 6.3."""

from __future__ import annotations

import mmap
import os

from msgspec import Struct
from msgspec.structs import replace

from conformance import ops
from conformance.client.addresses import PAGE
from conformance.client.process import Process
from conformance.client.tracefs import STATUS
from conformance.ops import Observation

PROT_READ = mmap.PROT_READ
PROT_WRITE = mmap.PROT_WRITE
PROT_EXEC = mmap.PROT_EXEC
READ_WRITE = PROT_READ | PROT_WRITE


class StatusPage(Struct, frozen=True):
    """A mapping of user_events_status, or of user_events_mmap, in a process."""

    process: Process
    address: int
    slot: int

    def of(self, process: Process) -> StatusPage:
        """The same mapping in a forked process."""
        return replace(self, process=process)

    def load(self, start: int = 0, length: int = 1) -> Observation:
        """Read bytes of the page."""
        return self.process.load(self.address + start, length)

    def shows(self, place: int) -> int:
        """The byte or bit of an event."""
        if self.process.profile.generation != "bit-status":
            return self.process.load_number(self.address + place, 1)
        return self.process.load_number(self.address + place // 8, 1) >> place % 8 & 1

    def store(self, start: int, data: bytes) -> Observation:
        """Write bytes of the page."""
        return self.process.store(self.address + start, data)

    def protect(self, protection: int) -> Observation:
        """mprotect(2) of the whole mapping."""
        return self.process.protect(self.address, protection, length_of(self.process) // PAGE)

    def unmap(self) -> Observation:
        """munmap(2) of the whole mapping."""
        return self.process.unmap(self.address, length_of(self.process) // PAGE)

    def close(self) -> Observation:
        """close(2) of the descriptor that was mapped."""
        return self.process.run(ops.Close(self.process.actor, self.slot))


def length_of(process: Process) -> int:
    """The length that a mapping must have, in bytes."""
    return (2 if process.profile.has("two_status_pages") else 1) * PAGE


def map_page(
    process: Process,
    *,
    file: str = STATUS,
    opened: int = os.O_RDONLY,
    protection: int = PROT_READ,
    shared: bool = True,
) -> StatusPage:
    """Map the page through a new descriptor."""
    _, slot = process.open(file, opened)
    length = length_of(process)
    _, address = process.map_status(slot, length=length, protection=protection, shared=shared)
    return StatusPage(process, address, slot)


def writable(process: Process) -> StatusPage:
    """Map the page for reading and writing."""
    return map_page(process, opened=os.O_RDWR, protection=READ_WRITE)


def mapping_error(
    process: Process,
    *,
    file: str = STATUS,
    opened: int = os.O_RDONLY,
    length: int = PAGE,
    protection: int = PROT_READ,
    shared: bool = True,
    offset: int = 0,
) -> str:
    """Errno of mmap(2) of a newly opened file of tracefs."""
    _, slot = process.open(file, opened)
    seen, _ = process.map_status(
        slot, length=length, protection=protection, shared=shared, offset=offset
    )
    return seen.errno
