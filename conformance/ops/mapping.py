"""Operations that change what is mapped where: mremap, madvise, files in memory."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.ops.syscalls import Operation


@dataclass(frozen=True, slots=True)
class MappingOperation(Operation):
    """What this module describes."""


@dataclass(frozen=True, slots=True)
class Mremap(MappingOperation):
    """mremap(2): pages move to a free address, and nothing is left at the old one; bytes."""

    address: int
    length: int
    new_address: int


@dataclass(frozen=True, slots=True)
class Discard(MappingOperation):
    """madvise(2) of MADV_DONTNEED; bytes."""

    address: int
    length: int


@dataclass(frozen=True, slots=True)
class MemoryFile(MappingOperation):
    """memfd_create(2) into ``slot``: an empty file."""

    slot: int


@dataclass(frozen=True, slots=True)
class Truncate(MappingOperation):
    """ftruncate(2) of such a file to ``length`` bytes, a multiple of pages."""

    slot: int
    length: int
