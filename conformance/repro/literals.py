"""C literals: bytes, addresses, numbers, flags."""

from __future__ import annotations

import errno
import mmap
import os

from conformance.client.addresses import FREE, GUARD, GUARD_LENGTH, SCRATCH, SCRATCH_LENGTH, WORDS
from conformance.ops.calls import MAP_FIXED_NOREPLACE

AREAS = {"SCRATCH": SCRATCH, "WORDS": WORDS, "ROOM": FREE}
"""Names of the places where programs map memory."""

_GUARD = bytes([GUARD]) * GUARD_LENGTH
GUARD_DEFINED = '#define GUARD "' + "".join(map(r"\{:o}".format, _GUARD)) + '"'
"""The bytes around enable words, which must never change."""

_ROOM_LENGTH = 1 << 40
_LENGTHS = {"SCRATCH": SCRATCH_LENGTH, "WORDS": mmap.PAGESIZE, "ROOM": _ROOM_LENGTH}
MAP_FLAGS = {
    mmap.MAP_SHARED: "MAP_SHARED",
    mmap.MAP_PRIVATE: "MAP_PRIVATE",
    mmap.MAP_ANONYMOUS: "MAP_ANONYMOUS",
    MAP_FIXED_NOREPLACE: "MAP_FIXED_NOREPLACE",
}
_LINE = 72
_PLAIN = {ord("\n"): "\\n", ord("\t"): "\\t", ord('"'): '\\"', ord("\\"): "\\\\"}


def string(content: bytes, indent: str = "\t") -> str:
    """Bytes as string literals, a line each if they are long."""
    if content.startswith(_GUARD) and content.endswith(_GUARD) and len(content) > 2 * len(_GUARD):
        return f"GUARD {_quoted(content[len(_GUARD) : -len(_GUARD)], indent)} GUARD"
    return _quoted(content, indent)


def _quoted(content: bytes, indent: str) -> str:
    parts, line = [], ""
    for position, byte in enumerate(content):
        line += _character(byte, content[position + 1 : position + 2])
        if len(line) >= _LINE or (byte == ord("\n") and len(content) > _LINE):
            parts.append(line)
            line = ""
    parts += [line] if line or not parts else []
    return f"\n{indent}".join(f'"{each}"' for each in parts)


def _character(byte: int, following: bytes) -> str:
    if byte in _PLAIN:
        return _PLAIN[byte]
    # "??" may begin a trigraph.
    if 0x20 <= byte < 0x7F and byte != ord("?"):
        return chr(byte)
    return f"\\{byte:03o}" if following.isdigit() else f"\\{byte:o}"


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


def error(name: str) -> str:
    """The number of an error: by name if C has one."""
    return name if hasattr(errno, name) else name.removeprefix("errno ")


def comment(text: str) -> str:
    """A text within a comment of C."""
    return text.replace("*/", "* /").replace("/*", "/ *")


def path(name: str) -> str:
    """A path as a string literal."""
    return string(os.fsencode(name))
