"""Numbers and attributes of ``include/uapi/linux/bpf.h``, as of its first ten commits.

``union bpf_attr`` has only the members of those commits; the kernel accepts a shorter union.
Offsets and sizes are in bytes.
"""

from __future__ import annotations

from enum import IntEnum

from conformance.abi.uapi import Layout, Member


class Command(IntEnum):
    """enum bpf_cmd."""

    MAP_CREATE = 0
    MAP_LOOKUP_ELEM = 1
    MAP_UPDATE_ELEM = 2
    MAP_DELETE_ELEM = 3
    MAP_GET_NEXT_KEY = 4
    PROG_LOAD = 5


class MapType(IntEnum):
    """enum bpf_map_type."""

    UNSPEC = 0
    HASH = 1
    ARRAY = 2


class ProgramType(IntEnum):
    """enum bpf_prog_type."""

    UNSPEC = 0
    SOCKET_FILTER = 1
    KPROBE = 2
    # Since 4.7, for kernel events, which user events are too.
    TRACEPOINT = 5


class Helper(IntEnum):
    """enum bpf_func_id."""

    UNSPEC = 0
    MAP_LOOKUP_ELEM = 1
    MAP_UPDATE_ELEM = 2
    MAP_DELETE_ELEM = 3
    PROBE_READ = 4


# Flags of MAP_UPDATE_ELEM; the others are reserved.
BPF_ANY = 0
BPF_NOEXIST = 1
BPF_EXIST = 2

# A bit of prog_flags (4.12): refuse unaligned access, even where the processor allows it.
BPF_F_STRICT_ALIGNMENT = 1

# The size of the union with these members.
ATTR_SIZE = 48

MAP_CREATE = Layout(
    "bpf_attr, for BPF_MAP_CREATE",
    ATTR_SIZE,
    (
        Member("map_type", 0, 4),
        Member("key_size", 4, 4),
        Member("value_size", 8, 4),
        Member("max_entries", 12, 4),
        # Since 4.6.
        Member("map_flags", 16, 4),
    ),
)
MAP_ELEM = Layout(
    "bpf_attr, for BPF_MAP_*_ELEM and BPF_MAP_GET_NEXT_KEY",
    ATTR_SIZE,
    (
        Member("map_fd", 0, 4),
        Member("key", 8, 8),
        # Called next_key by BPF_MAP_GET_NEXT_KEY.
        Member("value", 16, 8),
        Member("flags", 24, 8),
    ),
)
PROG_LOAD = Layout(
    "bpf_attr, for BPF_PROG_LOAD",
    ATTR_SIZE,
    (
        Member("prog_type", 0, 4),
        Member("insn_cnt", 4, 4),
        Member("insns", 8, 8),
        Member("license", 16, 8),
        Member("log_level", 24, 4),
        Member("log_size", 28, 4),
        Member("log_buf", 32, 8),
        Member("kern_version", 40, 4),
        # Since 4.12.
        Member("prog_flags", 44, 4),
    ),
)

# The source register of a 64-bit load whose immediate is the descriptor of a map.
PSEUDO_MAP_FD = 1
