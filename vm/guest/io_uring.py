"""One write through a temporary io_uring, with plain system calls."""

from __future__ import annotations

import ctypes
import struct

from vm.guest import syscalls
from vm.guest.numbers import NUMBERS

_SYS_SETUP, _SYS_ENTER, _SYS_REGISTER = 425, 426, 427
_SYS_CLOSE, _SYS_MMAP, _SYS_MUNMAP = (NUMBERS[name] for name in ("close", "mmap", "munmap"))
#: include/uapi/linux/io_uring.h
_OP_WRITEV, _OP_WRITE_FIXED, _OP_WRITE = 2, 5, 23
_REGISTER_BUFFERS = 0
_ENTER_GETEVENTS = 1
_OFF_SQES = 0x10000000
#: struct io_uring_params: its size, and where it holds the offsets of the two rings.
_PARAMS_SIZE = 120
_SQ_OFF, _CQ_OFF = 40, 80
#: struct io_uring_sqe, up to its user_data; the rest is zero.
_SQE = struct.Struct("<BBHiQQIIQ")
_SQE_SIZE = 64
#: Size of a ring with one entry.
_PAGE = 4096
_READ_WRITE, _SHARED = 3, 1
_TOKEN = 0x75657674
_MASK = (1 << 64) - 1


def write(
    descriptor: int, where: int, count: int, offset: int, *, vector: bool, registered: bool
) -> tuple[int, int]:
    """(value, errno) of the completion, or of a failed call before it."""
    params = ctypes.create_string_buffer(_PARAMS_SIZE)
    number, errno = syscalls.syscall(_SYS_SETUP, 1, ctypes.addressof(params))
    if errno:
        return -1, errno
    maps: list[int] = []
    try:
        for place in (0, _OFF_SQES):
            address, errno = syscalls.syscall(
                _SYS_MMAP, 0, _PAGE, _READ_WRITE, _SHARED, number, place
            )
            if errno:
                return -1, errno
            maps.append(address)
        rings, entries = maps
        operation = _OP_WRITEV if vector else _OP_WRITE
        if registered:
            operation = _OP_WRITE_FIXED
            buffer = ctypes.create_string_buffer(struct.pack("<QQ", where, count), 16)
            arguments = (_REGISTER_BUFFERS, ctypes.addressof(buffer), 1)
            _, errno = syscalls.syscall(_SYS_REGISTER, number, *arguments)
            if errno:
                return -1, errno
        entry = _SQE.pack(operation, 0, 0, descriptor, offset & _MASK, where, count, 0, _TOKEN)
        return _submit(number, rings, entries, entry, params.raw)
    finally:
        for address in maps:
            syscalls.syscall(_SYS_MUNMAP, address, _PAGE)
        syscalls.syscall(_SYS_CLOSE, number)


def _submit(number: int, rings: int, entries: int, entry: bytes, params: bytes) -> tuple[int, int]:
    """Submit the entry, wait for its completion and read it."""
    _, tail, _, _, _, _, array = struct.unpack_from("<7I", params, _SQ_OFF)
    *_, completions = struct.unpack_from("<6I", params, _CQ_OFF)
    ctypes.memmove(entries, entry.ljust(_SQE_SIZE, b"\0"), _SQE_SIZE)
    ctypes.memmove(rings + array, bytes(4), 4)
    ctypes.memmove(rings + tail, struct.pack("<I", 1), 4)
    _, errno = syscalls.syscall(_SYS_ENTER, number, 1, 1, _ENTER_GETEVENTS, 0, 0)
    if errno:
        return -1, errno
    _, value, _ = struct.unpack("<QiI", ctypes.string_at(rings + completions, 16))
    return (value, 0) if value >= 0 else (-1, -value)
