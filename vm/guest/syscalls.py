"""System calls through libc's syscall()."""

from __future__ import annotations

import ctypes

from vm.guest.numbers import NUMBERS

CLONE_PARENT = 0x00008000
SIGCHLD = 17

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_int64
_syscall.argtypes = [ctypes.c_int64, *[ctypes.c_uint64] * 6]
_ZEROES = (0, 0, 0, 0, 0, 0)


def syscall(number: int, *arguments: int) -> tuple[int, int]:
    """Return (value, errno); on error value is -1, otherwise errno is 0.

    The value is signed.  Arguments are truncated to 64 bits.
    """
    value: int = _syscall(number, *arguments, *_ZEROES[len(arguments) :])
    return (value, ctypes.get_errno()) if value == -1 else (value, 0)


def fork() -> tuple[int, int]:
    """Fork without Python's hooks: (pid, 0) in the parent, (0, 0) in the child.

    CLONE_PARENT makes the child a sibling, so that the supervisor reaps every actor.
    """
    return syscall(NUMBERS["clone"], CLONE_PARENT | SIGCHLD, 0, 0, 0, 0)
