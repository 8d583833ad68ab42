"""Operations as the generic calls of a guest: numbers and arguments of system calls.

A call is a list such as ``["sys", number, arguments, slot]``, ``["peek", address, length]``
or ``["fork", actor]``; bytes are in hexadecimal.  Descriptors are known by slots:
``["put_fd", address, slot]`` writes the number of one into memory, ``["take_fd", address,
slot]`` keeps the one whose number is found there.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
from collections.abc import Sequence

from conformance.abi.perf import PERF_FLAG_FD_CLOEXEC
from conformance.ops import credentials, mapping, race, tasks, tracing
from conformance.ops import syscalls as op
from conformance.ops.decoding import trace_page
from conformance.ops.encode import credential_calls, mapping_calls, task_calls

Call = Sequence[object]
# Calls, and the actor that is asked for them.
Request = tuple[str, tuple[Call, ...]]

# Longest text file read whole, in bytes: all of `trace` of one case and to spare.
_FILE_LIMIT = 2 << 20
_MAP_FIXED = 0x10
_MAP_FIXED_NOREPLACE = 0x100000
# Numbers of the x86-64 system-call table (arch/x86/entry/syscalls/syscall_64.tbl).
_NR = {
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
    "socketpair": 53,
    "setsockopt": 54,
    "getpid": 39,
    "fcntl": 72,
    "mkdir": 83,
    "rmdir": 84,
    "setgroups": 116,
    "setresuid": 117,
    "setresgid": 119,
    "unlink": 87,
    "init_module": 175,
    "delete_module": 176,
    "sched_setaffinity": 203,
    "openat": 257,
    "pwritev": 296,
    "perf_event_open": 298,
    "finit_module": 313,
    "bpf": 321,
    "io_uring_setup": 425,
}
_AT_FDCWD = -100
# Where stat(2) and socketpair(2) put their answers: a page that no program maps.
_ANSWER_PAGE = 0x2FFF_0000_0000
# struct stat of x86-64: bytes, and where st_mode is.
_STAT_SIZE = 144
STAT_MODE = slice(24, 28)


def sys_call(name: str, *arguments: object, slot: int | None = None) -> Call:
    """A system call by name.

    An argument is a number, ``{"fd": slot}``, ``{"in": hex}`` or ``{"out": size}``; with a
    ``slot`` the result is a descriptor that is kept there.
    """
    return ["sys", _NR[name], list(arguments), slot]


def path_in(path: str) -> dict[str, str]:
    """A path as an argument."""
    return {"in": (os.fsencode(path) + b"\0").hex()}


def fd(slot: int) -> dict[str, int]:
    """A descriptor as an argument."""
    return {"fd": slot}


def calls_of(operation: op.Operation) -> list[Call]:
    """The generic calls that perform an operation."""
    match operation:
        case op.Spawn(actor=actor):
            return [["spawn", actor]]
        case op.Fork(child=child):
            return [["fork", child]]
        case op.Exit(status=status):
            return [["exit", status]]
        case op.Setuid(uid=uid):
            return [
                sys_call("setgroups", 0, 0),
                sys_call("setresgid", uid, uid, uid),
                sys_call("setresuid", uid, uid, uid),
            ]
        case op.Store(address=address, data=data):
            return [["poke", address, data.hex()]]
        case op.StoreNumber(address=address, path=path):
            return [["number", path, address]]
        case op.Pin(cpu=cpu):
            mask = (1 << cpu).to_bytes(8, "little")
            return [sys_call("sched_setaffinity", 0, len(mask), {"in": mask.hex()})]
        case op.Load(address=address, length=length) | op.ReadRing(address=address, length=length):
            return [["peek", address, length]]
        case op.ReadFile(path=path):
            return [["slurp", path, _FILE_LIMIT]]
        case op.WriteFile(path=path, data=data, flags=flags):
            return [["spill", path, data.hex(), flags]]
        case op.Stat(path=path):
            return _stat_calls(path)
        case op.Socketpair(slot=slot, other_slot=other_slot):
            return _socketpair_calls(slot, other_slot)
        case op.StoreDescriptor(address=address, slot=slot):
            return [["put_fd", address, slot]]
        case op.Mmap() | op.Munmap() | op.Mprotect():
            return [_memory_call(operation)]
        case race.Race(tracks=tracks):
            made = [
                step.child for step in race.steps_of(operation) if isinstance(step, tasks.Clone)
            ]
            ids: list[Call] = [["via", child, ["tid"]] for child in made]
            return [["race", [_track_call(track) for track in tracks]], *ids]
        case tasks.TaskOperation():
            return task_calls.calls_of(operation)
        case mapping.MappingOperation():
            return [mapping_calls.call_of(operation)]
        case credentials.Right():
            return list(credential_calls.calls_of(operation))
        case _:
            return _tracing_calls(operation) or [_descriptor_call(operation)]


def _track_call(track: race.Track) -> Call:
    """What one task does in a race: every step is one call.  Raises ValueError."""
    calls = [call for step in track.steps for call in calls_of(step)]
    if len(calls) != len(track.steps):
        raise ValueError(f"a step of several calls in a race: {track.steps!r:.200}")
    return [track.actor, track.passes, calls]


def _tracing_calls(operation: op.Operation) -> list[Call]:
    """The calls of what tracing.py describes, none for anything else."""
    match operation:
        case tracing.MakeDirectory(path=path):
            return [sys_call("mkdir", path_in(path), 0o755)]
        case tracing.RemoveDirectory(path=path):
            return [sys_call("rmdir", path_in(path))]
        case tracing.WritePid(path=path, flags=flags):
            return [["spill_pid", path, flags]]
        case tracing.ReadPipe(slot=slot, count=count):
            return [sys_call("read", fd(slot), {"out": count}, count)]
        case tracing.ReadPage(slot=slot, id_path=id_path):
            read = sys_call("read", fd(slot), {"out": trace_page.SIZE}, trace_page.SIZE)
            return [["slurp", id_path, _FILE_LIMIT], sys_call("getpid"), read]
        case tracing.SubmitWrite(slot=slot, address=address, count=count, offset=offset):
            return [["submit", slot, address, count, offset, operation.vector]]
    return []


def _stat_calls(path: str) -> list[Call]:
    """stat(2) into a page of the actor's own, which is looked at then.

    A buffer of the channel gives back as many bytes as the call returned: here none.
    """
    return [
        _map_answer_page(),
        sys_call("stat", path_in(path), _ANSWER_PAGE),
        ["peek", _ANSWER_PAGE, _STAT_SIZE],
    ]


def _socketpair_calls(slot: int, other_slot: int) -> list[Call]:
    """socketpair(2), whose two descriptors are found in memory."""
    kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    return [
        _map_answer_page(),
        sys_call("socketpair", socket.AF_UNIX, kind, 0, _ANSWER_PAGE),
        ["take_fd", _ANSWER_PAGE, slot],
        ["take_fd", _ANSWER_PAGE + 4, other_slot],
    ]


def _map_answer_page() -> Call:
    fixed = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    return sys_call("mmap", _ANSWER_PAGE, mmap.PAGESIZE, protection, fixed, -1, 0)


def _memory_call(operation: op.Mmap | op.Munmap | op.Mprotect) -> Call:
    match operation:
        case op.Mmap(address=address, length=length, protection=protection, slot=slot):
            flags = operation.flags | _MAP_FIXED_NOREPLACE
            if slot is None:
                anonymous = flags | mmap.MAP_ANONYMOUS
                return sys_call("mmap", address, length, protection, anonymous, -1, 0)
            return sys_call("mmap", address, length, protection, flags, fd(slot), operation.offset)
        case op.Munmap(address=address, length=length):
            return sys_call("munmap", address, length)
        case op.Mprotect(address=address, length=length, protection=protection):
            return sys_call("mprotect", address, length, protection)


def _descriptor_call(operation: op.Operation) -> Call:
    match operation:
        case op.Open(slot=slot, path=path, flags=flags):
            return sys_call("openat", _AT_FDCWD, path_in(path), flags | os.O_CLOEXEC, 0, slot=slot)
        case op.Close(slot=slot):
            return sys_call("close", fd(slot))
        case op.Dup(slot=slot, new_slot=new_slot):
            return sys_call("fcntl", fd(slot), fcntl.F_DUPFD_CLOEXEC, 0, slot=new_slot)
        case op.Ioctl(slot=slot, request=request, argument=argument):
            return sys_call("ioctl", fd(slot), request, argument)
        case op.IoctlDescriptor(slot=slot, request=request, argument_slot=argument):
            return sys_call("ioctl", fd(slot), request, fd(argument))
        case op.PerfEventOpen(slot=slot, address=address, pid=pid, cpu=cpu):
            flags = PERF_FLAG_FD_CLOEXEC
            return sys_call("perf_event_open", address, pid, cpu, -1, flags, slot=slot)
        case op.Read(slot=slot, count=count):
            return sys_call("read", fd(slot), {"out": count}, count)
        case op.Write(slot=slot, address=address, count=count):
            return sys_call("write", fd(slot), address, count)
        case op.Pwrite(slot=slot, address=address, count=count, offset=offset):
            return sys_call("pwrite64", fd(slot), address, count, offset)
        case op.Writev(slot=slot, address=address, count=count):
            return sys_call("writev", fd(slot), address, count)
        case op.Pwritev(slot=slot, address=address, count=count, offset=offset):
            # The offset is passed in two halves; on 64 bits the low one holds it all.
            return sys_call("pwritev", fd(slot), address, count, offset, 0)
        case op.Lseek(slot=slot, offset=offset, whence=whence):
            return sys_call("lseek", fd(slot), offset, whence)
        case op.Bpf(command=command, address=address, size=size, slot=made):
            return sys_call("bpf", command, address, size, slot=made)
        case op.Setsockopt(slot=slot, level=level, option=option, address=address):
            return sys_call("setsockopt", fd(slot), level, option, address, operation.length)
    raise TypeError(f"operation without a system call: {operation!r}")
