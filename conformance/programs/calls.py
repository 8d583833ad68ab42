"""A recorded call: its name, its files, and whether it is one of user_events."""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Container, Mapping, Sequence

from msgspec import Struct

from conformance import ops
from conformance.client.tracefs import DATA, ROOT, STATUS
from conformance.ops.system_calls import MACHINES
from conformance.ops.tasks import CLONE_FILES
from vm.recorder.recording import Call

# Those of operations, and others (arch/x86/entry/syscalls/syscall_64.tbl).
NAMES = {number: name for name, number in MACHINES["x86_64"].numbers.items()} | {
    2: "open",
    17: "pread64",
    19: "readv",
    32: "dup",
    33: "dup2",
    40: "sendfile",
    85: "creat",
    157: "prctl",
    206: "io_setup",
    275: "splice",
    292: "dup3",
    295: "preadv",
    299: "recvmmsg",
    307: "sendmmsg",
    317: "seccomp",
    326: "copy_file_range",
    327: "preadv2",
    328: "pwritev2",
    436: "close_range",
    437: "openat2",
    438: "pidfd_getfd",
}
# The automount of tracefs in debugfs shows the same files.
_MOUNTS = (f"{ROOT}/", "/sys/kernel/debug/tracing/")
ANYWHERE = re.compile(r".*/(user_events_(?:data|status))")
# struct open_how: flags, mode, resolve.
_OPEN_HOW = struct.Struct("<3Q")
_CLOSE_RANGE_UNSHARE = 2
# Linux returns these to itself: the call is repeated after a signal.
_RESTARTS = range(512, 517)
USER_EVENTS = (DATA, STATUS)
# DIAG_IOC_MAGIC, and where an ioctl number has it.
_TYPE, _TYPE_SHIFT, _TYPE_MASK = ord("*"), 8, 0xFF


class NotJudged(Exception):
    """A call that the model cannot judge; the text says why."""


class Descriptors(Struct, frozen=True):
    """What the model knows of the caller's descriptors: paths by number, and closed ones.

    ``closed_here`` are those that the caller has closed itself, since it exists.
    """

    paths: Mapping[int, str]
    closed: Container[int] = ()
    closed_here: Container[int] = ()


def name_of(call: Call) -> str:
    """The name of a system call."""
    return NAMES.get(call.number, f"system call {call.number}")


def failure_of(call: Call) -> str:
    """What the kernel answered to a call that failed, before the reason why it is not judged."""
    if call.result is None or call.result >= 0:
        return ""
    return f"{name_of(call)} = -1 {ops.error_name(-call.result)}: "


def peeks(call: Call) -> bool:
    """Whether a received message stays where it is."""
    return bool(call.arguments[3 if name_of(call) == "recvmmsg" else 2] & socket.MSG_PEEK)


def tracefs_path(path: str) -> str:
    """The path of an open file of tracefs in its usual place; the file may be on another mount."""
    found = ANYWHERE.fullmatch(path)
    return f"{ROOT}/{found[1]}" if found else usual_path(path)


def usual_path(path: str) -> str:
    """A path of the automount in debugfs in its usual place."""
    for mount in _MOUNTS:
        if path.startswith(mount):
            return f"{ROOT}/{path.removeprefix(mount)}"
    return path


def unshares_files(call: Call) -> bool:
    """Whether a call gives its task a table of descriptors of its own."""
    flag = {"unshare": (0, CLONE_FILES), "close_range": (2, _CLOSE_RANGE_UNSHARE)}
    place, bit = flag.get(name_of(call), (0, 0))
    return call.result == 0 and bool(call.arguments[place] & bit)


def was_restarted(call: Call) -> bool:
    """Whether the kernel repeats the call, which is recorded again then."""
    return call.result is not None and -call.result in _RESTARTS


def is_foreign(call: Call, known: Descriptors, program: Sequence[ops.Operation] = ()) -> bool:
    """Whether a call is none of user_events: on another tracefs file, or another kind of ioctl."""
    paths = {tracefs_path(each.path) for each in call.before.files + call.after.files}
    paths |= {each.path for each in program if isinstance(each, ops.Open)}
    closed = {each.slot for each in program if isinstance(each, ops.Close)}
    paths |= {known.paths[slot] for slot in closed if slot in known.paths}
    return is_other_ioctl(call) or (bool(paths) and not paths & set(USER_EVENTS))


def is_other_ioctl(call: Call) -> bool:
    """Whether a call is an ioctl of another kind than those of user_events."""
    return name_of(call) == "ioctl" and call.arguments[1] >> _TYPE_SHIFT & _TYPE_MASK != _TYPE


def files_of(call: Call) -> str:
    """The names of the files of a call."""
    files = call.before.files + call.after.files
    names = dict.fromkeys(tracefs_path(each.path).removeprefix(f"{ROOT}/") for each in files)
    return ", ".join(names) or "a file of tracefs"


def open_flags(call: Call) -> tuple[int, int]:
    """The flags of an open(2), and `resolve` of openat2(2)."""
    if name_of(call) == "openat2":
        how = b"".join(each.data for each in call.before.memory[1:2])
        flags, _, resolve = _OPEN_HOW.unpack(how.ljust(_OPEN_HOW.size, b"\0")[: _OPEN_HOW.size])
        return flags, resolve
    given = {"open": 1, "openat": 2}.get(name_of(call))
    return os.O_WRONLY | os.O_TRUNC if given is None else call.arguments[given], 0


def truncates(call: Call) -> bool:
    """Whether a call opens a file with O_TRUNC."""
    return bool(open_flags(call)[0] & os.O_TRUNC)
