"""System calls through the 32-bit entry (int 0x80); the upper half of an address is lost."""

from __future__ import annotations

import mmap

from conformance.ops.c_text import request
from conformance.ops.calls import MAP_FIXED_NOREPLACE, Call, buffer, fd, sys_call_32
from conformance.ops.operation import Operation

_ENTRY = "/* int $0x80: */ "


class Ioctl32(Operation, frozen=True):
    """ioctl(2) of a 32-bit task."""

    slot: int
    request: int
    argument: int

    def c_text(self) -> str:
        return f"{_ENTRY}ioctl(fd{self.slot}, {request(self.request)}, {self.argument:#x})"

    def calls(self) -> list[Call]:
        return [sys_call_32("ioctl", fd(self.slot), self.request, self.argument)]


class Read32(Operation, frozen=True):
    """read(2) of a 32-bit task."""

    slot: int
    count: int

    def c_text(self) -> str:
        return f"{_ENTRY}read(fd{self.slot}, buffer, {self.count})"

    def calls(self) -> list[Call]:
        return [sys_call_32("read", fd(self.slot), buffer(self.count), self.count)]


class Write32(Operation, frozen=True):
    """write(2) of a 32-bit task."""

    slot: int
    address: int
    count: int

    def c_text(self) -> str:
        return f"{_ENTRY}write(fd{self.slot}, (void *){self.address:#x}, {self.count})"

    def calls(self) -> list[Call]:
        return [sys_call_32("write", fd(self.slot), self.address, self.count)]


class Writev32(Operation, frozen=True):
    """writev(2) of a 32-bit task: ``count`` iovecs of 8 bytes each at ``address``."""

    slot: int
    address: int
    count: int

    def c_text(self) -> str:
        return f"{_ENTRY}writev(fd{self.slot}, (struct iovec *){self.address:#x}, {self.count})"

    def calls(self) -> list[Call]:
        return [sys_call_32("writev", fd(self.slot), self.address, self.count)]


class Mmap32(Operation, frozen=True):
    """mmap2(2) of a descriptor by a 32-bit task; ``offset`` in bytes."""

    address: int
    length: int
    protection: int
    flags: int
    slot: int
    offset: int = 0

    def c_text(self) -> str:
        rights = "PROT_READ | PROT_WRITE" if self.protection & mmap.PROT_WRITE else "PROT_READ"
        kind = "MAP_SHARED" if self.flags & mmap.MAP_SHARED else "MAP_PRIVATE"
        return (
            f"{_ENTRY}mmap2((void *){self.address:#x}, {self.length:#x}, {rights}, "
            f"MAP_FIXED_NOREPLACE | {kind}, fd{self.slot}, {self.offset})"
        )

    def calls(self) -> list[Call]:
        where = (self.address, self.length, self.protection)
        flags = self.flags | MAP_FIXED_NOREPLACE
        return [sys_call_32("mmap2", *where, flags, fd(self.slot), self.offset // mmap.PAGESIZE)]
