"""From a recorded system call to operations of the model."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Callable, Mapping, Sequence

from conformance import ops
from conformance.client.tracefs import ROOT
from conformance.ops import compat
from conformance.programs import calls
from conformance.programs.calls import Descriptors, NotJudged
from vm.recorder.recording import Call, Memory

_OPEN_FLAGS = os.O_ACCMODE | os.O_TRUNC | os.O_APPEND | os.O_NONBLOCK
# Flags by which open(2) fails, or opens something else.
_OTHER_OPENS = {
    os.O_PATH: "O_PATH",
    os.O_DIRECTORY: "O_DIRECTORY",
    os.O_EXCL: "O_EXCL",
    os.O_DIRECT: "O_DIRECT",
}
_CLOSE_RANGE_CLOEXEC = 4
# The slot of a file that was not opened.
_NONE = -1


def observation(call: Call, operation: ops.Operation) -> ops.Observation:
    """What the kernel answered, as an observation of the operation."""
    result = call.result
    assert result is not None
    if -4096 < result < 0:
        return ops.Observation(-1, ops.error_name(-result))
    if isinstance(operation, (ops.Open, ops.Dup, ops.Close)):
        # The number of a descriptor is its slot; dup2(2) closes what it replaces.
        return ops.Observation(0)
    if isinstance(operation, ops.Read):
        return ops.Observation(result, "", b"".join(each.data for each in call.after.memory))
    return ops.Observation(result)


def operations_of(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    """The operations of a call; the last one has its result.  Empty if it changes nothing.

    Raises NotJudged.
    """
    is_closed = not call.before.files and call.result == -errno.EBADF
    if is_closed:
        # A new process may close whatever its parent had open.
        held = known.closed_here if calls.name_of(call) == "close" else known.closed
        if call.arguments[0] not in held:
            return []
    translate = _TRANSLATIONS.get(calls.name_of(call))
    if translate is None:
        raise NotJudged(f"{calls.name_of(call)} of {calls.files_of(call)}")
    return translate(call, actor, known)


def _signed(number: int, bits: int = 64) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> bits - 1 else number


def _descriptor(call: Call, place: int = 0) -> int:
    return _signed(call.arguments[place], 32)


def _known(call: Call, known: Descriptors, place: int = 0) -> int:
    """The descriptor of a call.  Raises NotJudged for one that the model has not seen."""
    descriptor = _descriptor(call, place)
    shown = next((each for each in call.before.files if each.descriptor == descriptor), None)
    if shown is not None and known.paths.get(descriptor) != calls.tracefs_path(shown.path):
        raise NotJudged(f"{calls.name_of(call)} on a descriptor of unknown origin")
    return descriptor


def _open(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    opened = next(iter(call.after.files), None)
    path = _refused_path(call) if opened is None else calls.tracefs_path(opened.path)
    if path is None:
        return []
    flags, resolve = calls.open_flags(call)
    if resolve and opened is None:
        raise NotJudged(f"openat2 with resolve={resolve:#x}")
    for flag, name in _OTHER_OPENS.items():
        if flags & flag:
            raise NotJudged(f"{calls.name_of(call)} with {name}")
    slot = _NONE if opened is None else opened.descriptor
    return [ops.Open(actor, slot, path, flags & _OPEN_FLAGS)]


def _refused_path(call: Call) -> str | None:
    """The path of an open(2) that failed, None for no file of tracefs.  Raises NotJudged.

    What the kernel found there is not known.
    """
    spelled = os.fsdecode(call.before.memory[0].data.split(b"\0")[0])
    path, ours = calls.usual_path(spelled), calls.ANYWHERE.fullmatch(f"/{spelled}")
    if ours and (path not in calls.USER_EVENTS or call.result == -errno.ENOENT):
        raise NotJudged(f"open of {spelled}: which file this is, if any, was not recorded")
    return path if path.startswith(f"{ROOT}/") else None


def _ioctl(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, request = _known(call, known), call.arguments[1] & 0xFFFFFFFF
    if calls.is_other_ioctl(call):
        raise NotJudged(f"ioctl {request:#x}")
    if call.compat:
        return [compat.Ioctl32(actor, slot, request, call.arguments[2] & 0xFFFFFFFF)]
    return [ops.Ioctl(actor, slot, request, call.arguments[2])]


def _write(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, (_, address, count, *_) = _known(call, known), call.arguments
    _check_recorded(call.before.memory[:1], [count])
    if call.compat:
        return [compat.Write32(actor, slot, address, count)]
    return [ops.Write(actor, slot, address, count)]


def _pwrite(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, (_, address, count, offset, *_) = _known(call, known), call.arguments
    _refuse_compat(call)
    _check_recorded(call.before.memory[:1], [count])
    return [ops.Pwrite(actor, slot, address, count, _signed(offset))]


def _writev(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, (_, address, count, offset, _, flags) = _known(call, known), call.arguments
    name, count = calls.name_of(call), _signed(count)
    vector, *parts = call.before.memory or [Memory(address, 0, b"")]
    pairs = struct.Struct("<2I" if call.compat else "<2Q")
    readable = len(vector.data) // pairs.size * pairs.size
    _check_recorded(parts, [length for _, length in pairs.iter_unpack(vector.data[:readable])])
    if name != "writev":
        _refuse_compat(call)
    if call.compat:
        return [compat.Writev32(actor, slot, address, count)]
    if name == "pwritev2" and flags:
        raise NotJudged(f"pwritev2 with flags {flags:#x}")
    if name == "writev" or (name == "pwritev2" and _signed(offset) == -1):
        return [ops.Writev(actor, slot, address, count)]
    return [ops.Pwritev(actor, slot, address, count, _signed(offset))]


def _check_recorded(payload: Sequence[Memory], lengths: Sequence[int]) -> None:
    """Raise NotJudged if less of a payload was recorded than is to be written."""
    for part, length in zip(payload, lengths, strict=False):
        if length > part.wanted:
            raise NotJudged(f"write of {length} bytes, more than are recorded")


def _refuse_compat(call: Call) -> None:
    """Raise NotJudged for a 32-bit call that has its numbers in other registers."""
    if call.compat:
        raise NotJudged(f"{calls.name_of(call)} of a 32-bit program")


def _close(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    return [ops.Close(actor, _known(call, known))]


def _close_range(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    first, last, flags, *_ = call.arguments
    inside = [slot for slot in known.paths if first <= slot <= last & 0xFFFFFFFF]
    if flags & _CLOSE_RANGE_CLOEXEC or call.result != 0:
        return []
    return [ops.Close(actor, slot) for slot in inside]


def _dup(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, new = _descriptor(call), call.result
    if new is None or new < 0 or new == slot:
        return []
    replaced = [ops.Close(actor, new)] if new in known.paths else []
    shown = [calls.tracefs_path(each.path) for each in call.before.files if each.descriptor == slot]
    if slot not in known.paths or (shown and shown[0] != known.paths[slot]):
        return [*replaced]
    return [*replaced, ops.Dup(actor, slot, new)]


def _fcntl(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    if call.arguments[1] not in (fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC):
        return []
    return _dup(call, actor, known)


def _mmap(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    _, length, protection, flags, _, offset = call.arguments
    slot = _known(call, known, 4)
    address = call.result if call.result is not None and call.result > 0 else 0
    return [ops.Mmap(actor, address, length, protection, flags & 0xF, slot, offset)]


def _read(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot = _known(call, known)
    if known.paths[slot] not in calls.USER_EVENTS or calls.name_of(call) != "read" or call.compat:
        raise NotJudged(f"{calls.name_of(call)} of {calls.files_of(call)}")
    return [ops.Read(actor, slot, call.arguments[2])]


def _lseek(call: Call, actor: str, known: Descriptors) -> list[ops.Operation]:
    slot, (_, offset, whence, *_) = _known(call, known), call.arguments
    _refuse_compat(call)
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
