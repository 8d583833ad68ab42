"""System calls through libc's syscall(), and memory for their arguments."""

from __future__ import annotations

import ctypes
import mmap
import struct
from errno import EFAULT

from vm.guest.numbers import NUMBERS

SYS_READ = NUMBERS["read"]
SYS_WRITE = NUMBERS["write"]
SYS_CLOSE = NUMBERS["close"]
SYS_CLONE = NUMBERS["clone"]
SYS_PIPE2 = NUMBERS["pipe2"]
SYS_PROCESS_VM_READV = NUMBERS["process_vm_readv"]
SYS_PROCESS_VM_WRITEV = NUMBERS["process_vm_writev"]
CLONE_PARENT = 0x00008000
SIGCHLD = 17

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_int64
_syscall.argtypes = [ctypes.c_int64, *[ctypes.c_uint64] * 6]
_ZEROES = (0, 0, 0, 0, 0, 0)
_MASK = (1 << 64) - 1


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
    return syscall(SYS_CLONE, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0)


class Scratch:
    """Reusable memory for the arguments of a call, larger than any frame.

    ctypes arrays would create a type per size, which takes longer than the call.
    """

    def __init__(self, size: int = 1 << 24) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, size, flags=flags)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._used = 0

    def clear(self) -> None:
        """Release all placed bytes."""
        self._used = 0

    def place(self, content: bytes) -> int:
        """Copy bytes to writable memory, valid until clear(), and return their address."""
        start = self._used
        end = start + len(content)
        # A slice beyond the end raises IndexError.
        self._memory[start:end] = content
        # Align the next argument to 8 bytes.
        self._used = (end | 7) + 1
        return self._base + start

    def bytes_at(self, where: int, length: int) -> bytes:
        """The bytes at an address returned by place()."""
        start = where - self._base
        return self._memory[start : start + length]


_scratch = Scratch()


def place(content: bytes) -> int:
    """Copy bytes for an argument of the next system call and return their address."""
    _scratch.clear()
    return _scratch.place(content)


def read_memory(pid: int, where: int, length: int) -> tuple[bytes, int]:
    """Read memory of a process: (bytes, errno); a partial transfer is EFAULT.

    process_vm_readv honours memory protection, unlike /proc/PID/mem.
    """
    _scratch.clear()
    memory = _scratch.place(bytes(length))
    local, remote = _iovec(memory, length), _iovec(where, length)
    value, errno = syscall(SYS_PROCESS_VM_READV, pid, local, 1, remote, 1, 0)
    if errno:
        return b"", errno
    return (_scratch.bytes_at(memory, length), 0) if value == length else (b"", EFAULT)


def write_memory(pid: int, where: int, content: bytes) -> tuple[int, int]:
    """Write memory of a process: (count, errno); a partial transfer is EFAULT."""
    _scratch.clear()
    local = _iovec(_scratch.place(content), len(content))
    remote = _iovec(where, len(content))
    value, errno = syscall(SYS_PROCESS_VM_WRITEV, pid, local, 1, remote, 1, 0)
    if errno == 0 and value != len(content):
        return -1, EFAULT
    return value, errno


def _iovec(where: int, length: int) -> int:
    """The address of a new struct iovec."""
    return _scratch.place(struct.pack("QQ", where & _MASK, length))
