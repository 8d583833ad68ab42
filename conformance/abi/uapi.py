"""Structures, ioctl numbers and flags of ``include/uapi/linux/user_events.h``.

Offsets and sizes are in bytes.  Integers are little-endian, the only byte order supported.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from msgspec import Struct

_CODES = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}


class Member(Struct, frozen=True):
    """An unsigned member of a structure: offset and size in bytes."""

    name: str
    offset: int
    size: int


class Layout(Struct, frozen=True):
    """A structure in memory; ``size`` in bytes."""

    name: str
    size: int
    members: tuple[Member, ...]

    def pack(self, values: Mapping[str, int]) -> bytes:
        """The bytes of the structure; members not named are zero.

        Raises KeyError for an unknown member, struct.error for a value that does not fit.
        """
        unknown = set(values) - {member.name for member in self.members}
        if unknown:
            raise KeyError(f"struct {self.name} has no member {', '.join(sorted(unknown))}")
        raw = bytearray(self.size)
        for member in self.members:
            struct.pack_into(_CODES[member.size], raw, member.offset, values.get(member.name, 0))
        return bytes(raw)

    def unpack(self, raw: bytes) -> dict[str, int]:
        """The members of the structure at the start of ``raw``.

        Raises struct.error if ``raw`` is too short.
        """
        return {
            member.name: struct.unpack_from(_CODES[member.size], raw, member.offset)[0]
            for member in self.members
        }

    def member(self, name: str) -> Member:
        """The member called ``name``.  Raises KeyError."""
        for member in self.members:
            if member.name == name:
                return member
        raise KeyError(f"struct {self.name} has no member {name}")


# struct user_reg since 6.4, __attribute__((__packed__)): the same on 32 and 64 bits.
USER_REG = Layout(
    "user_reg",
    28,
    (
        Member("size", 0, 4),
        Member("enable_bit", 4, 1),
        Member("enable_size", 5, 1),
        Member("flags", 6, 2),
        Member("enable_addr", 8, 8),
        Member("name_args", 16, 8),
        Member("write_index", 24, 4),
    ),
)

# struct user_reg of 5.18 to 6.0, not packed.
USER_REG_BYTE_STATUS = Layout(
    "user_reg",
    24,
    (
        Member("size", 0, 4),
        Member("name_args", 8, 8),
        Member("status_index", 16, 4),
        Member("write_index", 20, 4),
    ),
)

# struct user_reg of 6.1 to 6.3, packed; status_index is called status_bit there.
USER_REG_BIT_STATUS = Layout(
    "user_reg",
    20,
    (
        Member("size", 0, 4),
        Member("name_args", 4, 8),
        Member("status_bit", 12, 4),
        Member("write_index", 16, 4),
    ),
)

REG_RESULTS = frozenset({"write_index", "status_index", "status_bit"})
"""Members of struct user_reg that the kernel fills in, of every interface."""

# struct user_unreg since 6.4, packed as well.
USER_UNREG = Layout(
    "user_unreg",
    16,
    (
        Member("size", 0, 4),
        Member("disable_bit", 4, 1),
        Member("__reserved", 5, 1),
        Member("__reserved2", 6, 2),
        Member("disable_addr", 8, 8),
    ),
)

# enum user_reg_flag: the uapi header defines the bits as enum constants.
USER_EVENT_REG_PERSIST = 1 << 0
USER_EVENT_REG_MULTI_FORMAT = 1 << 1
REG_FLAGS = {
    USER_EVENT_REG_PERSIST: "USER_EVENT_REG_PERSIST",
    USER_EVENT_REG_MULTI_FORMAT: "USER_EVENT_REG_MULTI_FORMAT",
}
"""Names of the flags of struct user_reg."""

# EVENT_BIT_*: the bits of a status byte of 5.18 to 6.0.
EVENT_BIT_FTRACE = 0
EVENT_BIT_PERF = 1
EVENT_BIT_OTHER = 7

# The context of BPF programs in the merge window of 5.18, and its iterator.  Pointers are 64-bit
# here, 32-bit on i386.
USER_BPF_CONTEXT = Layout(
    "user_bpf_context",
    16,
    (
        Member("data_type", 0, 4),
        Member("data_len", 4, 4),
        # A union of kdata, udata and iter, by data_type.
        Member("data", 8, 8),
    ),
)
USER_BPF_ITER = Layout(
    "user_bpf_iter",
    16,
    (
        Member("iov_offset", 0, 4),
        Member("nr_segs", 4, 4),
        Member("iov", 8, 8),
    ),
)
# Values of data_type.
USER_BPF_DATA_KERNEL = 0
USER_BPF_DATA_USER = 1
USER_BPF_DATA_ITER = 2

# The ioctl numbers carry the size of a *pointer*: the macros name pointer types.
DIAG_IOCSREG = 0xC0082A00
DIAG_IOCSDEL = 0x40082A01
DIAG_IOCSUNREG = 0x40082A02


def dyn_loc(offset: int, size: int) -> int:
    """DYN_LOC(offset, size): the word of a ``__data_loc`` or ``__rel_loc`` field.

    Offset and size are in bytes, 0 to 65535 each.
    """
    return size << 16 | offset
