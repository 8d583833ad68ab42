"""C literals: bytes, addresses, numbers, flags."""

from __future__ import annotations

import errno
import mmap
import os

from conformance.client.addresses import FREE, SCRATCH, SCRATCH_LENGTH, WORDS
from conformance.ops.c_text import flag_names, open_flags, protection

__all__ = [
    "AREAS",
    "address",
    "data",
    "error",
    "flags_of_mmap",
    "open_flags",
    "pointer",
    "protection",
    "string",
]

AREAS = {"SCRATCH": SCRATCH, "WORDS": WORDS, "ROOM": FREE}
"""Names of the places where programs map memory."""

_ROOM_LENGTH = 1 << 40
_LENGTHS = {"SCRATCH": SCRATCH_LENGTH, "WORDS": mmap.PAGESIZE, "ROOM": _ROOM_LENGTH}
_MAP_FLAGS = {
    mmap.MAP_SHARED: "MAP_SHARED",
    mmap.MAP_PRIVATE: "MAP_PRIVATE",
    mmap.MAP_ANONYMOUS: "MAP_ANONYMOUS",
    0x100000: "MAP_FIXED_NOREPLACE",
}
_LINE = 72
_PLAIN = {ord("\n"): "\\n", ord("\t"): "\\t", ord('"'): '\\"', ord("\\"): "\\\\"}


def string(content: bytes, indent: str = "\t\t") -> str:
    """Bytes as string literals, a line each if they are long."""
    parts, line = [], ""
    for byte in content:
        shown = _character(byte)
        line += shown
        if len(line) >= _LINE or (byte == ord("\n") and len(content) > _LINE):
            parts.append(line)
            line = ""
    parts += [line] if line or not parts else []
    quoted = [f'"{each}"' for each in parts]
    if len(quoted) == 1:
        return quoted[0]
    return f"\n{indent}".join(["", *quoted])


def _character(byte: int) -> str:
    if byte in _PLAIN:
        return _PLAIN[byte]
    # "??" may begin a trigraph.
    return chr(byte) if 0x20 <= byte < 0x7F and byte != ord("?") else f"\\{byte:03o}"


def data(content: bytes) -> str:
    """Bytes and their length as two arguments."""
    return f"{string(content)}, {len(content)}"


def address(number: int) -> str:
    """An address as a pointer expression."""
    for name, start in AREAS.items():
        if start <= number < start + _LENGTHS[name]:
            offset = number - start
            return f"{name} + {offset:#x}" if offset else name
    return f"(char *){number:#x}"


def pointer(number: int) -> str:
    """An address as an operand."""
    text = address(number)
    return f"({text})" if " " in text else text


def error(name: str) -> str:
    """The number of an error: by name if C has one."""
    return name if hasattr(errno, name) else name.removeprefix("errno ")


def flags_of_mmap(bits: int) -> str:
    """MAP_* names."""
    return flag_names(bits, _MAP_FLAGS)


def octal(mode: int) -> str:
    """A mode."""
    return f"0{mode:o}"


def path(name: str) -> str:
    """A path as a string literal."""
    return string(os.fsencode(name))
