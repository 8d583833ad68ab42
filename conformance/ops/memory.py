"""Operations on a process's memory: load and store, mappings, and files in memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import ClassVar

from conformance.ops.c_text import literal, protection
from conformance.ops.calls import (
    AT_FDCWD,
    MAP_FIXED_NOREPLACE,
    Call,
    bytes_in,
    fd,
    path_in,
    sys_call,
)
from conformance.ops.operation import Operation, Reply, Resources

# Memory of the virtio console of the suite's guests (its MSI-X table).
DEVICE_MEMORY = "/sys/bus/pci/devices/0000:00:02.0/resource1"

# include/uapi/linux/mman.h
_MREMAP_MAYMOVE, _MREMAP_FIXED = 1, 2
_STAT_LENGTH = 1024


class Store(Operation, frozen=True):
    """Write ``data`` to ``address``; EFAULT stands for the fatal signal."""

    address: int
    data: bytes

    def c_text(self) -> str:
        return f"memcpy((void *){self.address:#x}, {literal(self.data)}, {len(self.data)})"

    def calls(self) -> list[Call]:
        return [["poke", self.address, self.data.hex()]]


class StoreNumber(Operation, frozen=True):
    """Write the number that a text file shows to ``address``, in 8 bytes.

    For numbers that the kernel chooses, such as the id of an event: a program uses them
    without knowing them.
    """

    address: int
    path: str
    depends_on_events: ClassVar[bool] = True

    def c_text(self) -> str:
        return f'*(long *){self.address:#x} = atol(cat("{self.path}"))'

    def calls(self) -> list[Call]:
        return [["number", self.path, self.address]]


class Load(Operation, frozen=True):
    """Read ``length`` bytes at ``address``; EFAULT stands for the fatal signal."""

    address: int
    length: int

    def c_text(self) -> str:
        return f"memcpy(buffer, (void *){self.address:#x}, {self.length})"

    def calls(self) -> list[Call]:
        return [["peek", self.address, self.length]]


class Mmap(Operation, frozen=True):
    """mmap(2) at a fixed address that must be free; ``slot`` None is anonymous memory."""

    address: int
    length: int
    protection: int
    flags: int
    slot: int | None = None
    offset: int = 0

    def c_text(self) -> str:
        kind = "MAP_SHARED" if self.flags & mmap.MAP_SHARED else "MAP_PRIVATE"
        file = f"{kind} | MAP_ANONYMOUS, -1" if self.slot is None else f"{kind}, fd{self.slot}"
        return (
            f"mmap((void *){self.address:#x}, {self.length:#x}, {protection(self.protection)}, "
            f"MAP_FIXED_NOREPLACE | {file}, {self.offset})"
        )

    def calls(self) -> list[Call]:
        where = (self.address, self.length, self.protection)
        flags = self.flags | MAP_FIXED_NOREPLACE
        if self.slot is None:
            return [sys_call("mmap", *where, flags | mmap.MAP_ANONYMOUS, -1, 0)]
        return [sys_call("mmap", *where, flags, fd(self.slot), self.offset)]

    def record(self, resources: Resources) -> None:
        resources.ranges.append((self.address, self.length))


class MapDevice(Operation, frozen=True):
    """mmap(2) of a page of a device at a fixed address that must be free.

    get_user_pages() does not find such a page (VM_PFNMAP).  Programs do not access it: that would
    reach the device.
    """

    address: int
    slot: int

    def c_text(self) -> str:
        return (
            f"mmap((void *){self.address:#x}, {mmap.PAGESIZE:#x}, PROT_READ | PROT_WRITE, "
            f'MAP_FIXED_NOREPLACE | MAP_SHARED, open("{DEVICE_MEMORY}", O_RDWR), 0)'
        )

    def calls(self) -> list[Call]:
        flags = MAP_FIXED_NOREPLACE | mmap.MAP_SHARED
        where = (self.address, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)
        opened = sys_call("openat", AT_FDCWD, path_in(DEVICE_MEMORY), os.O_RDWR, 0, slot=self.slot)
        return [
            opened,
            sys_call("mmap", *where, flags, fd(self.slot), 0),
            sys_call("close", fd(self.slot)),
        ]

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        return replies[1].value, None

    def record(self, resources: Resources) -> None:
        resources.ranges.append((self.address, mmap.PAGESIZE))


class MinorFaults(Operation, frozen=True):
    """The page faults of the process so far that needed no I/O (proc(5): minflt); not compared."""

    def c_text(self) -> str:
        return "cat /proc/self/stat /* minflt */"

    def calls(self) -> list[Call]:
        return [["slurp", "/proc/self/stat", _STAT_LENGTH]]

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        # After the name, which is in parentheses: state, ppid and five more, minflt.
        fields = (replies[0].data or b"").rpartition(b")")[2].split()
        return 0, fields[7]


class Munmap(Operation, frozen=True):
    """munmap(2)."""

    address: int
    length: int

    def c_text(self) -> str:
        return f"munmap((void *){self.address:#x}, {self.length:#x})"

    def calls(self) -> list[Call]:
        return [sys_call("munmap", self.address, self.length)]


class Mprotect(Operation, frozen=True):
    """mprotect(2)."""

    address: int
    length: int
    protection: int

    def c_text(self) -> str:
        rights = protection(self.protection)
        return f"mprotect((void *){self.address:#x}, {self.length:#x}, {rights})"

    def calls(self) -> list[Call]:
        return [sys_call("mprotect", self.address, self.length, self.protection)]


class Mremap(Operation, frozen=True):
    """mremap(2): move pages to a free address; the old range is unmapped.  Bytes."""

    address: int
    length: int
    new_address: int

    def c_text(self) -> str:
        lengths = f"{self.length:#x}, {self.length:#x}"
        flags = "MREMAP_MAYMOVE | MREMAP_FIXED"
        return f"mremap((void *){self.address:#x}, {lengths}, {flags}, {self.new_address:#x})"

    def calls(self) -> list[Call]:
        flags = _MREMAP_MAYMOVE | _MREMAP_FIXED
        lengths = (self.length, self.length)
        return [sys_call("mremap", self.address, *lengths, flags, self.new_address)]

    def record(self, resources: Resources) -> None:
        resources.ranges.append((self.new_address, self.length))


class Discard(Operation, frozen=True):
    """madvise(2) with MADV_DONTNEED; bytes."""

    address: int
    length: int

    def c_text(self) -> str:
        return f"madvise((void *){self.address:#x}, {self.length:#x}, MADV_DONTNEED)"

    def calls(self) -> list[Call]:
        return [sys_call("madvise", self.address, self.length, mmap.MADV_DONTNEED)]


class MemoryFile(Operation, frozen=True):
    """memfd_create(2) into ``slot``: an empty file."""

    slot: int

    def c_text(self) -> str:
        return f'fd{self.slot} = memfd_create("", MFD_CLOEXEC)'

    def calls(self) -> list[Call]:
        return [sys_call("memfd_create", bytes_in(b"\0"), os.MFD_CLOEXEC, slot=self.slot)]

    def record(self, resources: Resources) -> None:
        resources.slots.add(self.slot)


class Truncate(Operation, frozen=True):
    """ftruncate(2) of a memory file to ``length`` bytes, a multiple of the page size."""

    slot: int
    length: int

    def c_text(self) -> str:
        return f"ftruncate(fd{self.slot}, {self.length:#x})"

    def calls(self) -> list[Call]:
        return [sys_call("ftruncate", fd(self.slot), self.length)]
