"""Requests to the agent and its replies, as bytes: what agent.py describes as lists.

The agent takes its requests without an interpreter (guest/native/), so they are no JSON: all begins
at a multiple of 8 bytes and is little-endian.  A request is its number, how many places are watched
and how many calls there are; the places, (process id, address, length); the calls, each (kind,
flags, length of what follows).  A reply is a magic number, how many results there are, and the
request's number; the results, (value, errno, length of the data), each with its data and with what
was seen: a byte for each place says how it was looked at, then come the bytes of those seen.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from vm import wire
from vm.errors import CallRefused, ChannelBroken

Call = Sequence[Any]
Result = dict[str, Any]

#: In the place of memory that was not looked at after this call.
NOT_LOOKED_AT = "-"
#: In the place of memory whose process is no more.
GONE = "gone"

REPLY = b"RPLY"
_REQUEST = struct.Struct("<QII")
_PLACE = struct.Struct("<3Q")
_CALL = struct.Struct("<IIQ")
_SYSCALL = struct.Struct("<QIi")
_ARGUMENT = struct.Struct("<QQ")
_TWO = struct.Struct("<QQ")
_REPLY = struct.Struct("<4sIQ")
_RESULT = struct.Struct("<qII")
_SYS, _PEEK, _POKE, _PUT_FD, _TAKE_FD, _SLURP, _SPILL, _SPILL_PID, _NUMBER = range(9)
_LIST, _STATUS, _LOOK, _KILL, _SPAWN, _OTHER = range(9, 15)
_GETPID = 39
_SEEN_LATER = 1
_PLAIN, _DESCRIPTOR, _IN, _OUT = range(4)
_SEEN = 0
_UNSEEN = {1: None, 2: NOT_LOOKED_AT, 3: GONE}
_NO_DATA = (1 << 32) - 1
_MASK = (1 << 64) - 1
#: What an actor has room for: descriptors, arguments of a system call, bytes of its answer.
_SLOTS, _ARGUMENTS, _MOST = 65536, 6, wire.LIMIT
#: fork, vfork, clone and clone3 answer twice; only ["fork", ACTOR] knows what to do with that.
_FORKING = frozenset((56, 57, 58, 435))


def request(number: int, calls: Sequence[Call], places: Sequence[Sequence[int]]) -> bytes:
    """The payload of a request.  Raises CallRefused for a call that is none."""
    parts = [_REQUEST.pack(number, len(places), len(calls))]
    parts += [_PLACE.pack(pid, where & _MASK, length) for pid, where, length in places]
    for call in calls:
        flags = 0
        if call[0] == "unseen":
            flags, call = _SEEN_LATER, call[1]
        kind, body = _packed(call)
        parts += (_CALL.pack(kind, flags, len(body)), body)
    return b"".join(parts)


def number_of(payload: bytes) -> int:
    """Which request a reply answers.  Raises ChannelBroken."""
    try:
        _, _, number = _REPLY.unpack_from(payload)
    except struct.error:
        raise ChannelBroken(f"a reply of {len(payload)} bytes") from None
    return int(number)


def results(payload: bytes, lengths: Sequence[int]) -> list[Result]:
    """What a reply says of every call, ``lengths`` are those of the places that were watched.

    Raises ChannelBroken for what is no reply to that.
    """
    _, count, _ = _REPLY.unpack_from(payload)
    found = []
    at = _REPLY.size
    try:
        for _ in range(count):
            value, errno, length = _RESULT.unpack_from(payload, at)
            at += _RESULT.size
            data = None
            if length != _NO_DATA:
                data = _bytes(payload, at, length).hex()
                at += _aligned(length)
            hows = _bytes(payload, at, len(lengths))
            at += _aligned(len(lengths))
            seen: list[str | None] = []
            for how, each in zip(hows, lengths, strict=True):
                if how == _SEEN:
                    seen.append(_bytes(payload, at, each).hex())
                    at += each
                else:
                    seen.append(_UNSEEN[how])
            at = _aligned(at)
            found.append({"value": value, "errno": errno, "data": data, "watch": seen})
    except (struct.error, KeyError, ValueError) as error:
        raise ChannelBroken(
            f"no results of calls at byte {at} of {len(payload)}: {error}"
        ) from None
    if at != len(payload):
        raise ChannelBroken(f"{len(payload) - at} bytes after the results")
    return found


def _packed(call: Call) -> tuple[int, bytes]:
    """Kind and content of a call.  Raises CallRefused."""
    try:
        if (packer := _PACKERS.get(call[0])) is not None:
            return packer(*call[1:])
        return _OTHER, _padded(wire.text({"call": list(call)}))
    except (TypeError, ValueError, KeyError, IndexError, struct.error, wire.FrameError) as error:
        raise CallRefused(f"no such call: {call!r:.200}: {error}") from None


def _sys(number: int, arguments: Sequence[Any], slot: int | None) -> tuple[int, bytes]:
    if number in _FORKING:
        raise ValueError(f"system call {number} forks: use the call fork")
    if len(arguments) > _ARGUMENTS:
        raise ValueError(f"{len(arguments)} arguments")
    kept = -1 if slot is None else _slot(slot)
    parts = [_SYSCALL.pack(number & _MASK, len(arguments), kept)]
    for argument in arguments:
        if isinstance(argument, int):
            parts.append(_ARGUMENT.pack(_PLAIN, argument & _MASK))
            continue
        ((kind, content),) = argument.items()
        if kind == "fd":
            parts.append(_ARGUMENT.pack(_DESCRIPTOR, _slot(content)))
        elif kind == "in":
            data = bytes.fromhex(content)
            parts += (_ARGUMENT.pack(_IN, len(data)), _padded(data))
        elif kind == "out":
            parts.append(_ARGUMENT.pack(_OUT, _length(content)))
        else:
            raise ValueError(f"no such argument: {argument!r:.200}")
    return _SYS, b"".join(parts)


def _peek(where: int, length: int) -> tuple[int, bytes]:
    return _PEEK, _TWO.pack(where & _MASK, _length(length))


def _poke(where: int, content: str) -> tuple[int, bytes]:
    data = bytes.fromhex(content)
    return _POKE, _TWO.pack(where & _MASK, len(data)) + _padded(data)


def _put_fd(where: int, slot: int) -> tuple[int, bytes]:
    return _PUT_FD, _TWO.pack(where & _MASK, _slot(slot))


def _take_fd(where: int, slot: int) -> tuple[int, bytes]:
    return _TAKE_FD, _TWO.pack(where & _MASK, _slot(slot))


def _slurp(path: str, limit: int) -> tuple[int, bytes]:
    return _SLURP, _TWO.pack(_length(limit), 0) + _path(path)


def _spill(path: str, content: str, flags: int) -> tuple[int, bytes]:
    data = bytes.fromhex(content)
    return _SPILL, _TWO.pack(flags & _MASK, len(data)) + _padded(data) + _path(path)


def _spill_pid(path: str, flags: int) -> tuple[int, bytes]:
    return _SPILL_PID, _TWO.pack(flags & _MASK, 0) + _path(path)


def _number(path: str, where: int) -> tuple[int, bytes]:
    return _NUMBER, _TWO.pack(where & _MASK, 0) + _path(path)


def _list(path: str) -> tuple[int, bytes]:
    return _LIST, _TWO.pack(0, 0) + _path(path)


def _status(path: str) -> tuple[int, bytes]:
    return _STATUS, _TWO.pack(0, 0) + _path(path)


def _look(pid: int, where: int, length: int) -> tuple[int, bytes]:
    return _LOOK, _PLACE.pack(pid, where & _MASK, _length(length))


def _kill(pid: int, signal: int) -> tuple[int, bytes]:
    return _KILL, _TWO.pack(pid, signal)


def _spawn(port: str) -> tuple[int, bytes]:
    return _SPAWN, _path(port)


def _ping() -> tuple[int, bytes]:
    return _sys(_GETPID, [], None)


def _mark(text: str) -> tuple[int, bytes]:
    # Without its newline a record is held back until the next one (printk.c, vprintk_store).
    line = b"<5>" + text.encode("utf-8", "replace") + b"\n"
    return _spill("/dev/kmsg", line.hex(), os.O_WRONLY)


_PACKERS: dict[str, Callable[..., tuple[int, bytes]]] = {
    "sys": _sys,
    "peek": _peek,
    "poke": _poke,
    "put_fd": _put_fd,
    "take_fd": _take_fd,
    "slurp": _slurp,
    "spill": _spill,
    "spill_pid": _spill_pid,
    "number": _number,
    "list": _list,
    "status": _status,
    "look": _look,
    "kill": _kill,
    "spawn": _spawn,
    "ping": _ping,
    "mark": _mark,
}


def _slot(number: int) -> int:
    if not 0 <= number < _SLOTS:
        raise ValueError(f"slot {number}: there are 0 to {_SLOTS - 1}")
    return number


def _length(number: int) -> int:
    if not 0 <= number <= _MOST:
        raise ValueError(f"{number} bytes: there are 0 to {_MOST}")
    return number


def _path(path: str) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("a null byte in a path")
    return _padded(name + b"\0")


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 8)


def _aligned(length: int) -> int:
    return length + 7 & ~7


def _bytes(payload: bytes, at: int, length: int) -> bytes:
    if at + length > len(payload):
        raise ValueError(f"{length} bytes expected")
    return payload[at : at + length]
