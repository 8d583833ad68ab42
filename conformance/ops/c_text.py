"""Operations as statements of C, for failures that kernel developers read."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping

from conformance.abi import uapi
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
_REQUESTS = {
    uapi.DIAG_IOCSREG: "DIAG_IOCSREG",
    uapi.DIAG_IOCSDEL: "DIAG_IOCSDEL",
    uapi.DIAG_IOCSUNREG: "DIAG_IOCSUNREG",
}
_LONGEST_DATA = 48


def request(number: int) -> str:
    """The request of an ioctl(2), by name if it has exactly the number of one."""
    return _REQUESTS.get(number, f"{number:#x}")


def statement(operation: Operation) -> str:
    """One line, ``actor: call(...);``."""
    return f"{operation.actor}: {operation.c_text()};"


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
    """Bytes as a C string literal, cut short with the rest counted."""
    shown = data[:_LONGEST_DATA]
    text = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:03o}"
        for byte in shown
    )
    rest = len(data) - len(shown)
    return f'"{text}"' + (f" /* + {rest} bytes */" if rest else "")
