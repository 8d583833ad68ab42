"""The guest's half of vm.agent.encoding: decode requests, encode replies."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from vm import wire
from vm.agent import encoding

_NAMES = (
    *("sys", "peek", "poke", "put_fd", "take_fd", "slurp", "spill", "spill_pid", "number"),
    *("list", "status", "look", "kill", "spawn"),
)
_NUMBERS = {"look": "<3Q", "kill": "<QQ"}
_STATUSES = {None: 1, encoding.NOT_READ: 2, encoding.GONE: 3}
_NO_DATA = (1 << 32) - 1


def decode_request(payload: bytes) -> dict[str, Any]:
    """A request: its id, its calls (some only by name) and its watched places."""
    number, watches, count = struct.unpack_from("<QII", payload)
    watch = [list(struct.unpack_from("<3Q", payload, 16 + 24 * n)) for n in range(watches)]
    at = 16 + 24 * watches
    calls: list[list[Any]] = []
    for _ in range(count):
        kind, _, size = struct.unpack_from("<IIQ", payload, at)
        body = payload[at + 16 : at + 16 + size]
        at += 16 + size
        calls.append(_known(_NAMES[kind], body) if kind < len(_NAMES) else _other(body))
    assert at == len(payload)
    return {"id": number, "calls": calls, "watch": watch}


def _known(name: str, body: bytes) -> list[Any]:
    form = _NUMBERS.get(name)
    return [name, *struct.unpack(form, body)] if form else [name]


def _other(body: bytes) -> list[Any]:
    call = wire.unpack(body.rstrip(b"\0"))["call"]
    assert isinstance(call, list)
    return call


def encode_reply(number: int, results: Sequence[dict[str, Any]]) -> bytes:
    """The payload of a reply with results as returned by Machine.call."""
    parts = [struct.pack("<4sIQ", encoding.REPLY, len(results), number)]
    for result in results:
        data = None if result["data"] is None else bytes.fromhex(result["data"])
        length = _NO_DATA if data is None else len(data)
        parts.append(struct.pack("<qII", result["value"], result["errno"], length))
        parts.append(_padded(data or b""))
        parts.append(_padded(bytes(_STATUSES.get(text, 0) for text in result["watch"])))
        seen = (text for text in result["watch"] if text not in _STATUSES)
        parts.append(_padded(b"".join(map(bytes.fromhex, seen))))
    return b"".join(parts)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 8)
