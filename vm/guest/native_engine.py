"""What is done without the interpreter: the code in native/, loaded, and its events."""

from __future__ import annotations

import ctypes
import os

from vm.guest import LIBRARY

TYPE_CHECKING = False  # as typing's, whose import costs a fifth of a second here
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Its events.
PERFORM, HOST_GONE, NO_MEMORY, TOO_LONG, *_BROKEN = range(9)
#: Which part of a frame was wrong, by event.
BROKEN = dict(zip(_BROKEN, ("magic", "length", "checksum", "payload", "order"), strict=True))
#: Kinds of calls that it leaves to us.
SPAWN, OTHER = 13, 14
_NO_DATA = (1 << 32) - 1
_SLOTS = 65536


class _Left(ctypes.Structure):
    """The call that is left to us."""

    _fields_ = (
        ("kind", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("bytes", ctypes.c_void_p),
    )


_library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), LIBRARY))
_library.engine_note.argtypes = [
    ctypes.c_int64,
    ctypes.c_uint32,
    ctypes.c_char_p,
    ctypes.c_uint32,
]
_library.engine_note.restype = ctypes.c_bool
_library.engine_know.restype = _library.engine_supervises.restype = ctypes.c_bool
_left = _Left.in_dll(_library, "engine_left")
_request = ctypes.c_uint64.in_dll(_library, "engine_request")
_slots = (ctypes.c_int32 * _SLOTS).in_dll(_library, "engine_slots")
_slots_end = ctypes.c_uint32.in_dll(_library, "engine_slots_end")

#: The checksum of the sources that the library was made of.
VERSION = ctypes.c_uint32.in_dll(_library, "engine_version").value


def begin(port: int) -> None:
    """Serve a port, of which nothing was read yet, from now on."""
    _library.engine_begin(port)


def supervise(woken: int, waker: int) -> None:
    """Be the supervisor: ``woken`` and ``waker`` are the pipe that tells of SIGCHLD."""
    _library.engine_supervise(woken, waker)


def supervises() -> bool:
    """Whether this process is the supervisor, and not an actor that was born."""
    still: bool = _library.engine_supervises()
    return still


def be_born(device: str) -> None:
    """Be an actor, in a child of the supervisor's; serve() is to come next."""
    _library.engine_be_born(device.encode())
    _library.engine_drop()


def know(name: str, device: str) -> bool:
    """Remember the device of a port, for actors to be; False without room for it."""
    known: bool = _library.engine_know(name.encode(), device.encode())
    return known


def port() -> int:
    """The descriptor of the port that is served: an actor that was born has another."""
    descriptor: int = _library.engine_port()
    return descriptor


def serve() -> int:
    """Serve until there is something to do, or to know: an event."""
    event: int = _library.engine_serve()
    return event


def left() -> tuple[int, bytes]:
    """The call to be performed after PERFORM: its kind, and its bytes."""
    return _left.kind, ctypes.string_at(_left.bytes, _left.length)


def note(value: int, errno: int, data: bytes | None) -> bool:
    """What that call came to; False without the memory to say so."""
    noted: bool = _library.engine_note(value, errno, data, _NO_DATA if data is None else len(data))
    return noted


def drop() -> int:
    """Answer nothing to the request that is being performed; which it is."""
    _library.engine_drop()
    number: int = _request.value
    return number


class Slots:
    """The descriptors of this process, by slot; a dictionary to whoever uses it."""

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
        """What dict() asks for."""
        return (slot for slot in range(_slots_end.value) if _slots[slot])
