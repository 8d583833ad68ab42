"""Numbers of the system calls that the agent itself makes, by machine."""

from __future__ import annotations

import os

_NAMES = ("close", "clone", "getpid", "mmap", "munmap")
# arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/asm-generic/unistd.h for newer machines.
_X86_64 = (3, 56, 39, 9, 11)
_GENERIC = (57, 220, 172, 222, 215)
_IS_X86 = os.uname().machine == "x86_64"

NUMBERS = dict(zip(_NAMES, _X86_64 if _IS_X86 else _GENERIC, strict=True))
#: System calls that return twice: fork, vfork, clone and clone3.
FORKING = frozenset((56, 57, 58, 435) if _IS_X86 else (220, 435))
