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

Call = Sequence[object]
# Calls and the actor that performs them.
Request = tuple[str, tuple[Call, ...]]

AT_FDCWD = -100
MAP_FIXED = 0x10
MAP_FIXED_NOREPLACE = 0x100000
# Pages that no program maps: for what the kernel writes, and for structures that it reads.
ANSWER_PAGE = 0x2FFF_0000_0000
STRUCT_PAGE = 0x2FFF_0001_0000
# Longest text file that is read whole, in bytes: `trace` of one case is shorter.
FILE_LIMIT = 2 << 20

MACHINES = ("x86_64",)
# arch/x86/entry/syscalls/syscall_64.tbl
NUMBERS = {
    "read": 0,
    "write": 1,
    "close": 3,
    "stat": 4,
    "lseek": 8,
    "mmap": 9,
    "mprotect": 10,
    "munmap": 11,
    "ioctl": 16,
    "pwrite64": 18,
    "writev": 20,
    "mremap": 25,
    "madvise": 28,
    "getpid": 39,
    "sendmsg": 46,
    "recvmsg": 47,
    "socketpair": 53,
    "setsockopt": 54,
    "fcntl": 72,
    "ftruncate": 77,
    "mkdir": 83,
    "rmdir": 84,
    "unlink": 87,
    "chmod": 90,
    "chown": 92,
    "setgroups": 116,
    "setresuid": 117,
    "setresgid": 119,
    "capset": 126,
    "mknod": 133,
    "sched_setscheduler": 144,
    "prctl": 157,
    "chroot": 161,
    "mount": 165,
    "umount2": 166,
    "init_module": 175,
    "delete_module": 176,
    "sched_setaffinity": 203,
    "getdents64": 217,
    "openat": 257,
    "unshare": 272,
    "pwritev": 296,
    "perf_event_open": 298,
    "prlimit64": 302,
    "finit_module": 313,
    "seccomp": 317,
    "memfd_create": 319,
    "bpf": 321,
    "io_uring_setup": 425,
}
# arch/x86/entry/syscalls/syscall_32.tbl
NUMBERS_32 = {"read": 3, "write": 4, "ioctl": 54, "writev": 146, "mmap2": 192}


def sys_call(name: str, *arguments: object, slot: int | None = None) -> Call:
    """A system call by name; with a ``slot`` the result is a descriptor that is kept there."""
    return ["sys", NUMBERS[name], list(arguments), slot]


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
