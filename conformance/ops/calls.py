"""Calls of the agent: system calls by name, their arguments, and a scratch page for structures.

A call is a list such as ``["sys", number, arguments, slot]``, ``["peek", address, length]`` or
``["fork", actor]``; bytes are hexadecimal.  An argument is a number, a descriptor (``fd``), bytes
(``bytes_in``, ``path_in``) or a buffer (``buffer``).  ``["put_fd", address, slot]`` writes the
number of a descriptor to memory, ``["take_fd", address, slot]`` keeps the descriptor whose number
is in memory.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence

from conformance.ops.system_calls import AT_FDCWD as AT_FDCWD
from conformance.ops.system_calls import MACHINE, number_and_arguments

Call = Sequence[object]
# Calls and the actor that performs them.
Request = tuple[str, tuple[Call, ...]]

MAP_FIXED = 0x10
MAP_FIXED_NOREPLACE = 0x100000
# Pages that no program maps: for what the kernel writes, and for structures that it reads.
ANSWER_PAGE = 0x2FFF_0000_0000
STRUCT_PAGE = 0x2FFF_0001_0000
# Longest text file that is read whole, in bytes: `trace` of one case is shorter.
FILE_LIMIT = 2 << 20

NUMBERS = MACHINE.numbers
# arch/x86/entry/syscalls/syscall_32.tbl
NUMBERS_32 = {"read": 3, "write": 4, "ioctl": 54, "writev": 146, "mmap2": 192}


def sys_call(name: str, *arguments: object, slot: int | None = None) -> Call:
    """A system call by name; with a ``slot`` the result is a descriptor that is kept there."""
    number, complete = number_and_arguments(name, arguments)
    return ["sys", number, complete, slot]


def sys_call_32(name: str, *arguments: object) -> Call:
    """A system call through the 32-bit entry (int 0x80)."""
    return ["int80", NUMBERS_32[name], list(arguments), None]


def fd(slot: int) -> dict[str, int]:
    """A descriptor as an argument."""
    return {"fd": slot}


def bytes_in(content: bytes) -> dict[str, str]:
    """Bytes that the kernel reads, as an argument."""
    return {"in": content.hex()}


def path_in(path: str) -> dict[str, str]:
    """A path as an argument."""
    return bytes_in(os.fsencode(path) + b"\0")


def buffer(size: int) -> dict[str, int]:
    """A buffer that the kernel fills, as an argument; the reply holds as many bytes as it fills."""
    return {"out": size}


def map_page(address: int) -> Call:
    """Map a zeroed page for one of the scratch addresses above."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    return sys_call("mmap", address, mmap.PAGESIZE, protection, flags, -1, 0)
