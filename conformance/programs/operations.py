"""From a recorded system call to operations of the model."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

from conformance import ops
from conformance.client.tracefs import DATA, ROOT, STATUS
from conformance.ops import compat
from vm.recorder.recording import Call

# arch/x86/entry/syscalls/syscall_64.tbl
NAMES = {
    0: "read",
    1: "write",
    2: "open",
    3: "close",
    8: "lseek",
    9: "mmap",
    16: "ioctl",
    17: "pread64",
    18: "pwrite64",
    20: "writev",
    32: "dup",
    33: "dup2",
    40: "sendfile",
    46: "sendmsg",
    47: "recvmsg",
    72: "fcntl",
    85: "creat",
    257: "openat",
    272: "unshare",
    275: "splice",
    292: "dup3",
    296: "pwritev",
    326: "copy_file_range",
    328: "pwritev2",
    425: "io_uring_setup",
    436: "close_range",
    437: "openat2",
    438: "pidfd_getfd",
}
# The automount of tracefs in debugfs shows the same files.
_MOUNTS = (f"{ROOT}/", "/sys/kernel/debug/tracing/")
_ANYWHERE = re.compile(r".*/(user_events_(?:data|status))")
_OPEN_FLAGS = os.O_ACCMODE | os.O_TRUNC | os.O_APPEND | os.O_NONBLOCK
# Flags by which open(2) fails, or opens something else.
_OTHER_OPENS = {
    os.O_PATH: "O_PATH",
    os.O_DIRECTORY: "O_DIRECTORY",
    os.O_EXCL: "O_EXCL",
    os.O_DIRECT: "O_DIRECT",
}
_F_DUPFD, _F_DUPFD_CLOEXEC = 0, 1030
_CLOSE_RANGE_UNSHARE, _CLOSE_RANGE_CLOEXEC = 2, 4
# Linux returns these to itself: the call is repeated after a signal.
_RESTARTS = range(512, 517)
_USER_EVENTS = (DATA, STATUS)
# DIAG_IOC_MAGIC, and where an ioctl number has it.
_TYPE, _TYPE_SHIFT = ord("*"), 8


class NotJudged(Exception):
    """A call that the model cannot judge; the text says why."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """What the model knows of the caller's descriptors: paths by number, and closed ones."""

    paths: Mapping[int, str]
    closed: Container[int] = ()


def name_of(call: Call) -> str:
    """The name of a system call."""
    return NAMES.get(call.number, f"system call {call.number}")


def tracefs_path(path: str) -> str:
    """The path of a file of tracefs in its usual place."""
    for mount in _MOUNTS:
        if path.startswith(mount):
            return f"{ROOT}/{path.removeprefix(mount)}"
    found = _ANYWHERE.fullmatch(path)
    return f"{ROOT}/{found[1]}" if found else path


def was_restarted(call: Call) -> bool:
    """Whether the kernel repeats the call, which is recorded again then."""
    return call.result is not None and -call.result in _RESTARTS


def observation(call: Call, operation: ops.Operation) -> ops.Observation:
    """What the kernel answered, as an observation of the operation."""
    result = call.result
    assert result is not None
    if -4096 < result < 0:
        return ops.Observation(-1, errno.errorcode.get(-result, f"errno {-result}"))
    if isinstance(operation, (ops.Open, ops.Dup)):
        # The number of a descriptor is its slot.
        return ops.Observation(0)
    if isinstance(operation, ops.Read):
        return ops.Observation(result, "", b"".join(each.data for each in call.after.memory))
    return ops.Observation(result)


def operations_of(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    """The operations of a call; the last one has its result.  Empty if it changes nothing.

    Raises NotJudged.
    """
    is_closed = not call.before.files and call.result == -errno.EBADF
    if is_closed and call.arguments[0] not in known.closed:
        return []
    translate = _TRANSLATIONS.get(name_of(call))
    if translate is None:
        raise NotJudged(f"{name_of(call)} of {files_of(call)}")
    return translate(call, actor, known)


def is_foreign(call: Call, program: Sequence[ops.Operation] = ()) -> bool:
    """Whether a call is none of user_events: on another tracefs file, or another kind of ioctl."""
    paths = {tracefs_path(each.path) for each in call.before.files + call.after.files}
    paths |= {each.path for each in program if isinstance(each, ops.Open)}
    other = name_of(call) == "ioctl" and call.arguments[1] >> _TYPE_SHIFT & 0xFF != _TYPE
    return other or (bool(paths) and not paths & set(_USER_EVENTS))


def files_of(call: Call) -> str:
    """The names of the files of a call."""
    files = call.before.files + call.after.files
    names = dict.fromkeys(tracefs_path(each.path).removeprefix(f"{ROOT}/") for each in files)
    return ", ".join(names) or "a file of tracefs"


def _signed(number: int, bits: int = 64) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> bits - 1 else number


def _descriptor(call: Call, place: int = 0) -> int:
    return _signed(call.arguments[place], 32)


def _known(call: Call, known: Descriptors, place: int = 0) -> int:
    """The descriptor of a call.  Raises NotJudged for one that the model has not seen."""
    descriptor = _descriptor(call, place)
    shown = next((each for each in call.before.files if each.descriptor == descriptor), None)
    if shown is not None and known.paths.get(descriptor) != tracefs_path(shown.path):
        raise NotJudged(f"{name_of(call)} on a descriptor of unknown origin")
    return descriptor


def _open(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    opened = next(iter(call.after.files), None)
    given = {"open": 1, "openat": 2}.get(name_of(call))
    if opened is not None:
        path = tracefs_path(opened.path)
    else:
        path = tracefs_path(os.fsdecode(call.before.memory[0].data.split(b"\0")[0]))
        if not path.startswith(f"{ROOT}/"):
            raise NotJudged("open by a path that is not absolute")
    if path == DATA and call.result == -errno.ENOENT:
        raise NotJudged("open of user_events_data: the kernel was built without user_events")
    flags = os.O_WRONLY | os.O_TRUNC if given is None else call.arguments[given]
    if name_of(call) == "openat2":
        # The first member of struct open_how.
        flags = int.from_bytes(call.before.memory[1].data, "little")
    for flag, name in _OTHER_OPENS.items():
        if flags & flag:
            raise NotJudged(f"{name_of(call)} with {name}")
    slot = call.result if call.result is not None and call.result >= 0 else 0
    return [ops.Open(actor, slot, path, flags & _OPEN_FLAGS)]


def _ioctl(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, request = _known(call, known), call.arguments[1] & 0xFFFFFFFF
    if request >> _TYPE_SHIFT & 0xFF != _TYPE:
        raise NotJudged(f"ioctl {request:#x}")
    if call.compat:
        return [compat.Ioctl32(actor, slot, request, call.arguments[2] & 0xFFFFFFFF)]
    return [ops.Ioctl(actor, slot, request, call.arguments[2])]


def _write(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, (_, address, count, *_) = _known(call, known), call.arguments
    longest = max((each.wanted for each in call.before.memory), default=count)
    if count > longest:
        raise NotJudged(f"write of {count} bytes, more than are recorded")
    if call.compat:
        return [compat.Write32(actor, slot, address, count)]
    return [ops.Write(actor, slot, address, count)]


def _pwrite(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, (_, address, count, offset, *_) = _known(call, known), call.arguments
    return [ops.Pwrite(actor, slot, address, count, _signed(offset))]


def _writev(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, (_, address, count, offset, _, flags) = _known(call, known), call.arguments
    count = _signed(count)
    if call.compat:
        return [compat.Writev32(actor, slot, address, count)]
    if name_of(call) == "pwritev2" and flags:
        raise NotJudged(f"pwritev2 with flags {flags:#x}")
    if name_of(call) == "writev" or (name_of(call) == "pwritev2" and _signed(offset) == -1):
        return [ops.Writev(actor, slot, address, count)]
    return [ops.Pwritev(actor, slot, address, count, _signed(offset))]


def _close(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    return [ops.Close(actor, _known(call, known))]


def _close_range(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    first, last, flags, *_ = call.arguments
    inside = [slot for slot in known.paths if first <= slot <= last & 0xFFFFFFFF]
    if flags & _CLOSE_RANGE_UNSHARE and inside:
        raise NotJudged("close_range with CLOSE_RANGE_UNSHARE")
    if flags & _CLOSE_RANGE_CLOEXEC or call.result != 0:
        return []
    return [ops.Close(actor, slot) for slot in inside]


def _dup(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, new = _descriptor(call), call.result
    if new is None or new < 0 or new == slot:
        return []
    replaced = [ops.Close(actor, new)] if new in known.paths else []
    if slot not in known.paths:
        if any(each.descriptor == slot for each in call.before.files):
            _known(call, known)
        return [*replaced]
    return [*replaced, ops.Dup(actor, slot, new)]


def _fcntl(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    if call.arguments[1] not in (_F_DUPFD, _F_DUPFD_CLOEXEC):
        return []
    return _dup(call, actor, known)


def _mmap(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    _, length, protection, flags, _, offset = call.arguments
    slot = _known(call, known, 4)
    address = call.result if call.result is not None and call.result > 0 else 0
    return [ops.Mmap(actor, address, length, protection, flags & 0xF, slot, offset)]


def _read(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot = _known(call, known)
    if known.paths[slot] not in _USER_EVENTS or name_of(call) != "read" or call.compat:
        raise NotJudged(f"{name_of(call)} of {files_of(call)}")
    return [ops.Read(actor, slot, call.arguments[2])]


def _lseek(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, (_, offset, whence, *_) = _known(call, known), call.arguments
    return [ops.Lseek(actor, slot, _signed(offset), whence)]


_Translate = Callable[[Call, str, Descriptors], list[ops.Operation]]
_TRANSLATIONS: Mapping[str, _Translate] = {
    "open": _open,
    "openat": _open,
    "openat2": _open,
    "creat": _open,
    "ioctl": _ioctl,
    "write": _write,
    "pwrite64": _pwrite,
    "writev": _writev,
    "pwritev": _writev,
    "pwritev2": _writev,
    "close": _close,
    "close_range": _close_range,
    "dup": _dup,
    "dup2": _dup,
    "dup3": _dup,
    "fcntl": _fcntl,
    "mmap": _mmap,
    "read": _read,
    "lseek": _lseek,
}
