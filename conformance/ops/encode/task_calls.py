"""Operations of tasks as the generic calls of a guest (see calls.py)."""

from __future__ import annotations

import fcntl
import mmap
import resource
import socket
import struct
from collections.abc import Sequence

from conformance.ops import race, tasks

Call = Sequence[object]

# Numbers of system calls for 64 bits, and for 32 (arch/x86/entry/syscalls/syscall_32.tbl).
_SENDMSG, _RECVMSG, _FCNTL, _PRLIMIT64, _MMAP = 46, 47, 72, 302, 9
_READ_32, _WRITE_32, _IOCTL_32, _WRITEV_32, _MMAP2_32 = 3, 4, 54, 146, 192
_MAP_FIXED_NOREPLACE = 0x100000
_PAGE = 4096
# Where messages are put together: a page that no program maps.
_MESSAGE = 0x2FFF_0001_0000
_IOVEC, _BYTE, _CONTROL = _MESSAGE + 64, _MESSAGE + 96, _MESSAGE + 128
# struct cmsghdr and one descriptor: what they take, and where the descriptor is.
_CONTROL_LENGTH, _PASSED = 24, _CONTROL + 16
_MSG_CMSG_CLOEXEC = 0x40000000


def calls_of(operation: tasks.TaskOperation) -> list[Call]:
    """The generic calls that perform an operation."""
    match operation:
        case race.Add(address=address, amount=amount, times=times):
            return [["add", address, amount, times]]
        case tasks.Clone(actor=maker, child=child, flags=flags):
            # A name with a stroke in it is that of a task.
            return [["task", child, maker if "/" in maker else None, flags]]
        case tasks.Exec(path=path):
            return [["exec", path]]
        case tasks.ExitTask(status=status):
            return [["exit_task", status]]
        case tasks.Die():
            return [["die"]]
        case tasks.KeepOverExec(slot=slot):
            return [_sys(_FCNTL, _fd(slot), fcntl.F_SETFD, 0)]
        case tasks.LimitDescriptors(most=most):
            hard = 4096
            limit = {"in": struct.pack("<QQ", most, hard).hex()}
            return [_sys(_PRLIMIT64, 0, resource.RLIMIT_NOFILE, limit, 0)]
        case tasks.SendDescriptor(slot=slot, passed=passed):
            return [
                *_message(),
                ["put_fd", _PASSED, passed],
                _sys(_SENDMSG, _fd(slot), _MESSAGE, 0),
            ]
        case tasks.ReceiveDescriptor(slot=slot, new_slot=new_slot):
            flags = _MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
            return [
                *_message(),
                _sys(_RECVMSG, _fd(slot), _MESSAGE, flags),
                ["take_fd", _PASSED, new_slot],
            ]
        case _:
            return [_call_of_32_bits(operation)]


def _call_of_32_bits(operation: tasks.TaskOperation) -> Call:
    match operation:
        case tasks.Ioctl32(slot=slot, request=request, argument=argument):
            return _int80(_IOCTL_32, _fd(slot), request, argument)
        case tasks.Read32(slot=slot, count=count):
            return _int80(_READ_32, _fd(slot), {"out": count}, count)
        case tasks.Write32(slot=slot, address=address, count=count):
            return _int80(_WRITE_32, _fd(slot), address, count)
        case tasks.Writev32(slot=slot, address=address, count=count):
            return _int80(_WRITEV_32, _fd(slot), address, count)
        case tasks.Mmap32(address=address, length=length, protection=protection, slot=slot):
            flags = operation.flags | _MAP_FIXED_NOREPLACE
            pages = operation.offset // _PAGE
            return _int80(_MMAP2_32, address, length, protection, flags, _fd(slot), pages)
    raise TypeError(f"operation without a system call: {operation!r}")


def _sys(number: int, *arguments: object) -> Call:
    return ["sys", number, list(arguments), None]


def _int80(number: int, *arguments: object) -> Call:
    return ["int80", number, list(arguments), None]


def _fd(slot: int) -> dict[str, int]:
    return {"fd": slot}


def _message() -> list[Call]:
    """A struct msghdr with one byte of data and room for one descriptor."""
    fixed = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10
    rights = mmap.PROT_READ | mmap.PROT_WRITE
    header = struct.pack("<QIIQQQQII", 0, 0, 0, _IOVEC, 1, _CONTROL, _CONTROL_LENGTH, 0, 0)
    iovec = struct.pack("<QQ", _BYTE, 1)
    # cmsg_len without the padding behind the descriptor.
    length = _PASSED + 4 - _CONTROL
    control = struct.pack("<QIIi", length, socket.SOL_SOCKET, socket.SCM_RIGHTS, -1)
    return [
        _sys(_MMAP, _MESSAGE, _PAGE, rights, fixed, (1 << 64) - 1, 0),
        ["poke", _MESSAGE, header.hex()],
        ["poke", _IOVEC, iovec.hex()],
        ["poke", _CONTROL, control.hex()],
    ]
