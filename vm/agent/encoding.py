"""Binary encoding of requests to the agent and of its replies; agent.py describes the calls.

The guest parses requests in C (vm/guest/native/), so they are not JSON.  All items are
little-endian and aligned to 8 bytes.

A request is its number and the counts of watched places and calls; the places (process id, address,
length); and the calls (kind, flags, length of the body, body).  A reply is a magic number, the
count of results and the request's number; and the results (value, errno, length of the data), each
followed by its data and the watched memory: a status byte per place, then the bytes of those read.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from vm import wire
from vm.errors import CallRefused, ChannelBroken
from vm.guest.numbers import FORKING, NUMBERS

Call = Sequence[Any]
Result = dict[str, Any]

#: Stands for memory that was not read after this call.
NOT_READ = "-"
#: Stands for memory of a process that has ended.
GONE = "gone"

REPLY = b"RPLY"
_REQUEST = struct.Struct("<QII")
_PLACE = struct.Struct("<3Q")
_CALL = struct.Struct("<IIQ")
_SYSCALL = struct.Struct("<QIi")
_ARGUMENT = struct.Struct("<QQ")
_PAIR = struct.Struct("<QQ")
_REPLY = struct.Struct("<4sIQ")
_RESULT = struct.Struct("<qII")
_SYS, _PEEK, _POKE, _PUT_FD, _TAKE_FD, _SLURP, _SPILL, _SPILL_PID, _NUMBER = range(9)
_LIST, _STATUS, _LOOK, _KILL, _SPAWN, _OTHER = range(9, 15)
_UNWATCHED = 1
_PLAIN, _DESCRIPTOR, _IN, _OUT = range(4)
_READ = 0
_NOT_READ = {1: None, 2: NOT_READ, 3: GONE}
_NO_DATA = (1 << 32) - 1
_MASK = (1 << 64) - 1
#: Limits of an actor: descriptors, arguments of a system call, bytes of a reply.
_SLOTS, _ARGUMENTS, _MOST = 65536, 6, wire.LIMIT


def request(number: int, calls: Sequence[Call], places: Sequence[Sequence[int]]) -> bytes:
    """The payload of a request.  Raises CallRefused for a malformed call."""
    parts = [_REQUEST.pack(number, len(places), len(calls))]
    parts += [_PLACE.pack(pid, where & _MASK, length) for pid, where, length in places]
    for call in calls:
        flags = 0
        if call[0] == "unseen":
            flags, call = _UNWATCHED, call[1]
        kind, body = _packed(call)
        parts += (_CALL.pack(kind, flags, len(body)), body)
    return b"".join(parts)


def number_of(payload: bytes) -> int:
    """The number of the request that a reply answers.  Raises ChannelBroken."""
    try:
        _, _, number = _REPLY.unpack_from(payload)
    except struct.error:
        raise ChannelBroken(f"a reply of {len(payload)} bytes") from None
    return int(number)


def results(payload: bytes, lengths: Sequence[int]) -> list[Result]:
    """The results in a reply; `lengths` are those of the watched places.

    Raises ChannelBroken if the reply is malformed.
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
            statuses = _bytes(payload, at, len(lengths))
            at += _aligned(len(lengths))
            seen: list[str | None] = []
            for status, each in zip(statuses, lengths, strict=True):
                if status == _READ:
                    seen.append(_bytes(payload, at, each).hex())
                    at += each
                else:
                    seen.append(_NOT_READ[status])
            at = _aligned(at)
            found.append({"value": value, "errno": errno, "data": data, "watch": seen})
    except (struct.error, KeyError, ValueError) as error:
        raise ChannelBroken(f"malformed reply at byte {at} of {len(payload)}: {error}") from None
    if at != len(payload):
        raise ChannelBroken(f"{len(payload) - at} bytes after the results")
    return found


def _packed(call: Call) -> tuple[int, bytes]:
    """Kind and body of a call.  Raises CallRefused."""
    try:
        if (packer := _PACKERS.get(call[0])) is not None:
            return packer(*call[1:])
        return _OTHER, _padded(wire.text({"call": list(call)}))
    except (TypeError, ValueError, KeyError, IndexError, struct.error, wire.FrameError) as error:
        raise CallRefused(f"malformed call {call!r:.200}: {error}") from None


def _sys(number: int, arguments: Sequence[Any], slot: int | None) -> tuple[int, bytes]:
    if number in FORKING:
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
            raise ValueError(f"unknown argument {argument!r:.200}")
    return _SYS, b"".join(parts)


def _with_content(kind: int, where: int, content: str, path: bytes = b"") -> tuple[int, bytes]:
    data = bytes.fromhex(content)
    return kind, _pair(where, len(data)) + _padded(data) + path


def _mark(text: str) -> tuple[int, bytes]:
    # printk holds back a record without a newline (printk.c: vprintk_store).
    line = b"<7>" + text.encode("utf-8", "replace") + b"\n"
    return _with_content(_SPILL, os.O_WRONLY, line.hex(), _path("/dev/kmsg"))


_PACKERS: dict[str, Callable[..., tuple[int, bytes]]] = {
    "sys": _sys,
    "peek": lambda where, length: (_PEEK, _pair(where, _length(length))),
    "poke": lambda where, content: _with_content(_POKE, where, content),
    "put_fd": lambda where, slot: (_PUT_FD, _pair(where, _slot(slot))),
    "take_fd": lambda where, slot: (_TAKE_FD, _pair(where, _slot(slot))),
    "slurp": lambda path, limit: (_SLURP, _pair(_length(limit), 0) + _path(path)),
    "spill": lambda path, content, flags: _with_content(_SPILL, flags, content, _path(path)),
    "spill_pid": lambda path, flags: (_SPILL_PID, _pair(flags, 0) + _path(path)),
    "number": lambda path, where: (_NUMBER, _pair(where, 0) + _path(path)),
    "list": lambda path: (_LIST, _pair(0, 0) + _path(path)),
    "status": lambda path: (_STATUS, _pair(0, 0) + _path(path)),
    "look": lambda pid, where, length: (_LOOK, _PLACE.pack(pid, where & _MASK, _length(length))),
    "kill": lambda pid, signal: (_KILL, _pair(pid, signal)),
    "spawn": lambda port: (_SPAWN, _path(port)),
    "ping": lambda: _sys(NUMBERS["getpid"], [], None),
    "mark": _mark,
}


def _pair(first: int, second: int) -> bytes:
    return _PAIR.pack(first & _MASK, second)


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
