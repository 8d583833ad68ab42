"""Operations that change what is mapped where, as the generic calls of a guest (see calls.py)."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.ops import mapping

Call = Sequence[object]

_MREMAP, _MADVISE, _FTRUNCATE, _MEMFD_CREATE = 25, 28, 77, 319
_MAYMOVE_FIXED, _DONTNEED, _CLOEXEC = 3, 4, 1


def call_of(operation: mapping.MappingOperation) -> Call:
    """The generic call that performs an operation."""
    match operation:
        case mapping.Mremap(address=address, length=length, new_address=new):
            return _sys(_MREMAP, address, length, length, _MAYMOVE_FIXED, new)
        case mapping.Discard(address=address, length=length):
            return _sys(_MADVISE, address, length, _DONTNEED)
        case mapping.MemoryFile(slot=slot):
            return _sys(_MEMFD_CREATE, {"in": "00"}, _CLOEXEC, slot=slot)
        case mapping.Truncate(slot=slot, length=length):
            return _sys(_FTRUNCATE, {"fd": slot}, length)
    raise TypeError(f"operation without a system call: {operation!r}")


def _sys(number: int, *arguments: object, slot: int | None = None) -> Call:
    return ["sys", number, list(arguments), slot]
