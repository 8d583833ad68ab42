"""Operations as statements of C, for failures that kernel developers read."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from typing import NamedTuple

from conformance.abi import perf, uapi
from conformance.ops.operation import Operation

_OPEN_FLAGS = {
    os.O_WRONLY: "O_WRONLY",
    os.O_RDWR: "O_RDWR",
    os.O_APPEND: "O_APPEND",
    os.O_TRUNC: "O_TRUNC",
    os.O_CREAT: "O_CREAT",
    os.O_NONBLOCK: "O_NONBLOCK",
    os.O_CLOEXEC: "O_CLOEXEC",
}
_PROTECTIONS = {
    mmap.PROT_READ: "PROT_READ",
    mmap.PROT_WRITE: "PROT_WRITE",
    mmap.PROT_EXEC: "PROT_EXEC",
}
DIAG_REQUESTS = {
    uapi.DIAG_IOCSREG: "DIAG_IOCSREG",
    uapi.DIAG_IOCSDEL: "DIAG_IOCSDEL",
    uapi.DIAG_IOCSUNREG: "DIAG_IOCSUNREG",
}
_REQUESTS = {
    **DIAG_REQUESTS,
    perf.PERF_EVENT_IOC_ENABLE: "PERF_EVENT_IOC_ENABLE",
    perf.PERF_EVENT_IOC_DISABLE: "PERF_EVENT_IOC_DISABLE",
    perf.PERF_EVENT_IOC_RESET: "PERF_EVENT_IOC_RESET",
    perf.PERF_EVENT_IOC_SET_FILTER: "PERF_EVENT_IOC_SET_FILTER",
    perf.PERF_EVENT_IOC_SET_BPF: "PERF_EVENT_IOC_SET_BPF",
}
_DIRECTIONS = ("_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ | _IOC_WRITE")
# Bytes of a literal that are shown; of those in hexadecimal half as many.
_LONGEST = 64
# Equal bytes that are written one by one.
_LONGEST_ROW = 4
_ESCAPES = {0x09: "\\t", 0x0A: "\\n", 0x22: '\\"', 0x5C: "\\\\"}
_PLAIN = frozenset({*range(0x20, 0x7F), *_ESCAPES})


def request(number: int) -> str:
    """The request of an ioctl(2): its name, what differs from it, or the parts of its number."""
    if number in _REQUESTS:
        return _REQUESTS[number]
    parts = _Request.of(number)
    for known, name in _REQUESTS.items():
        like = _Request.of(known)
        if (parts.type, parts.number) == (like.type, like.number):
            size = "" if parts.size == like.size else f" with size {parts.size}"
            way = "" if parts.direction == like.direction else f" with {parts.direction}"
            return f"{name}{size}{way}"
    kind = f"'{chr(parts.type)}'" if 0x20 < parts.type < 0x7F else f"{parts.type:#x}"
    return f"_IOC({parts.direction}, {kind}, {parts.number}, {parts.size})"


class _Request(NamedTuple):
    """The parts of an ioctl number, include/uapi/asm-generic/ioctl.h."""

    direction: str
    type: int
    number: int
    size: int

    @classmethod
    def of(cls, number: int) -> _Request:
        """The parts of a number."""
        direction = _DIRECTIONS[number >> 30 & 3]
        return cls(direction, number >> 8 & 0xFF, number & 0xFF, number >> 16 & 0x3FFF)


def statement(operation: Operation) -> str:
    """One line, ``actor: call(...)``."""
    return f"{operation.actor}: {operation.c_text()}"


def flag_names(bits: int, names: Mapping[int, str], none: str = "0") -> str:
    """The names of bits that are set, joined by ``|``."""
    return " | ".join(name for bit, name in names.items() if bits & bit) or none


def protection(bits: int) -> str:
    """PROT_* names of mmap(2) protection bits."""
    return flag_names(bits, _PROTECTIONS, "PROT_NONE")


def open_flags(flags: int) -> str:
    """O_* names of open(2) flags."""
    names = flag_names(flags, _OPEN_FLAGS, "")
    if flags & os.O_ACCMODE != os.O_RDONLY:
        return names
    return f"O_RDONLY | {names}" if names else "O_RDONLY"


def literal(data: bytes) -> str:
    """Bytes as a C string if they are text, else in hexadecimal; a long one is cut and counted."""
    text = data.removesuffix(b"\0")
    if text and all(byte in _PLAIN for byte in text):
        end = "\\0" if len(text) < len(data) else ""
        rest = f" /* + {len(text) - _LONGEST} bytes */" if len(text) > _LONGEST else ""
        return f'"{_escaped(text[:_LONGEST])}{end}"{rest}'
    if len(data) > _LONGEST_ROW and len(set(data)) == 1:
        return f"[{data[0]:02x} * {len(data)}]"
    more = f" ... {len(data)} bytes" if len(data) > _LONGEST // 2 else ""
    return f"[{data[: _LONGEST // 2].hex(' ')}{more}]"


def _escaped(text: bytes) -> str:
    return "".join(_ESCAPES.get(byte, chr(byte)) for byte in text)
