"""Bindings of the native engine, the agent's fast path in C (native/)."""

from __future__ import annotations

import ctypes
import os

from vm.guest import LIBRARY

TYPE_CHECKING = False  # importing typing takes 0.2 s under emulation
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Events returned by serve(), as in native.h.
PERFORM, HOST_GONE, NO_MEMORY, TOO_LONG, *_BROKEN = range(9)
#: The wrong part of a frame, by event.
BROKEN = dict(zip(_BROKEN, ("magic", "length", "checksum", "payload", "order"), strict=True))
_NO_DATA = (1 << 32) - 1
_SLOTS = 65536


class _PendingCall(ctypes.Structure):
    """The call left to Python."""

    _fields_ = (
        ("length", ctypes.c_uint64),
        ("bytes", ctypes.c_void_p),
    )


_library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), LIBRARY))
_library.engine_append_result.argtypes = [
    ctypes.c_int64,
    ctypes.c_uint32,
    ctypes.c_char_p,
    ctypes.c_uint32,
]
_library.engine_append_result.restype = ctypes.c_bool
_library.engine_register_port.restype = _library.engine_supervises.restype = ctypes.c_bool
_pending = _PendingCall.in_dll(_library, "engine_pending")
_request = ctypes.c_uint64.in_dll(_library, "engine_request")
_slots = (ctypes.c_int32 * _SLOTS).in_dll(_library, "engine_slots")
_slots_end = ctypes.c_uint32.in_dll(_library, "engine_slots_end")

#: The checksum of the sources of the library.
VERSION = ctypes.c_uint32.in_dll(_library, "engine_version").value
#: Start to serve a port from which nothing was read yet.
begin: Callable[[int], object] = _library.engine_begin
#: Serve until an event occurs.
serve: Callable[[], int] = _library.engine_serve
#: The descriptor of the served port, which changes in a forked actor.
port: Callable[[], int] = _library.engine_port
#: Become the supervisor; the arguments are the two ends of the pipe that SIGCHLD writes to.
supervise: Callable[[int, int], object] = _library.engine_supervise
#: Whether this process is the supervisor and not a forked actor.
supervises: Callable[[], bool] = _library.engine_supervises


def register_port(name: str, device: str) -> None:
    """Register the device of a port for spawn.  Raises ValueError if the table is full."""
    if not _library.engine_register_port(name.encode(), device.encode()):
        raise ValueError(f"no room for port {name!r}")


def drain_device(device: str) -> None:
    """Discard what was sent to the last user of a port, before another process gets it."""
    _library.engine_drain_device(device.encode())


def pending_call() -> bytes:
    """The call to perform after PERFORM, as JSON with padding."""
    return ctypes.string_at(_pending.bytes, _pending.length)


def append_result(value: int, errno: int, data: bytes | None) -> bool:
    """Append the result of that call to the reply; False if out of memory."""
    appended: bool = _library.engine_append_result(
        value, errno, data, _NO_DATA if data is None else len(data)
    )
    return appended


def drop_request() -> int:
    """Abandon the current request and return its number."""
    _library.engine_drop_request()
    number: int = _request.value
    return number


def task_code() -> tuple[bytes, int]:
    """The code of tasks (native/tasks.S), and where a program starts in it.

    Raises ValueError on machines that have no tasks.
    """
    names = ("task_code", "task_program", "task_code_end")
    code, start, end = (ctypes.addressof(ctypes.c_char.in_dll(_library, name)) for name in names)
    return ctypes.string_at(code, end - code), start - code


class Slots:
    """The descriptors of this process by slot, with the interface of a dict."""

    def __contains__(self, slot: int) -> bool:
        return 0 <= slot < _SLOTS and _slots[slot] != 0

    def __getitem__(self, slot: int) -> int:
        if slot not in self:
            raise KeyError(slot)
        return _slots[slot] - 1

    def __setitem__(self, slot: int, descriptor: int) -> None:
        if not 0 <= slot < _SLOTS:
            raise KeyError(slot)
        _slots[slot] = descriptor + 1
        _slots_end.value = max(_slots_end.value, slot + 1)

    def keys(self) -> Iterator[int]:
        """The used slots; dict() needs it."""
        return (slot for slot in range(_slots_end.value) if _slots[slot])
