"""The segments of a 64-bit ELF file (elf(5))."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from msgspec import Struct

_MAGIC = b"\x7fELF\x02\x01"
_HEADER = 64
#: Formats and offsets of e_phoff, and of e_phentsize with e_phnum.
_TABLE = struct.Struct("<Q")
_TABLE_AT = 32
_ENTRIES = struct.Struct("<HH")
_ENTRIES_AT = 54
#: p_type, p_flags, p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align.
_SEGMENT = struct.Struct("<IIQQQQQQ")
PT_LOAD = 1
PT_INTERP = 3


class Segment(Struct, frozen=True):
    """A program header: type, and offset and size in bytes."""

    kind: int
    offset: int
    size: int

    @property
    def end(self) -> int:
        """The offset of the first byte after it."""
        return self.offset + self.size


def segments(file: Path) -> tuple[Segment, ...]:
    """The segments of a file; none if it is no complete 64-bit ELF.  Raises OSError."""
    with file.open("rb") as opened:
        header = opened.read(_HEADER)
        if not header.startswith(_MAGIC) or len(header) < _HEADER:
            return ()
        (start,) = _TABLE.unpack_from(header, _TABLE_AT)
        size, count = _ENTRIES.unpack_from(header, _ENTRIES_AT)
        if size != _SEGMENT.size or start + size * count > os.fstat(opened.fileno()).st_size:
            return ()
        opened.seek(start)
        table = opened.read(size * count)
    return tuple(
        Segment(kind, offset, size)
        for kind, _, offset, _, _, size, _, _ in _SEGMENT.iter_unpack(table)
    )


def loader_of(program: Path) -> Path | None:
    """The dynamic loader of a program, None for a static one.  Raises OSError."""
    for segment in segments(program):
        if segment.kind == PT_INTERP:
            name = program.read_bytes()[segment.offset : segment.end]
            return Path(os.fsdecode(name.rstrip(b"\0")))
    return None


def loaded(file: Path) -> bytes:
    """The content of a file up to the end of its last loaded segment.

    This leaves out symbols and debugging information.  A file that is no ELF is returned whole.
    Raises OSError.
    """
    content = file.read_bytes()
    ends = [segment.end for segment in segments(file) if segment.kind == PT_LOAD]
    return content[: max(ends)] if ends else content
