"""Facts of ``include/uapi/linux/perf_event.h`` for perf events on user events."""

from __future__ import annotations

from conformance.abi.uapi import Layout, Member

# struct perf_event_attr of PERF_ATTR_SIZE_VER0; later members are zero.  ``flags`` is its bit
# field.
PERF_EVENT_ATTR = Layout(
    "perf_event_attr",
    64,
    (
        Member("type", 0, 4),
        Member("size", 4, 4),
        Member("config", 8, 8),
        Member("sample_period", 16, 8),
        Member("sample_type", 24, 8),
        Member("read_format", 32, 8),
        Member("flags", 40, 8),
        Member("wakeup_events", 48, 4),
        Member("bp_type", 52, 4),
        Member("config1", 56, 8),
    ),
)
# PERF_ATTR_SIZE_VER4, whose last member is ``sample_regs_intr``, u64.
ATTR_SIZE_WITH_REGISTERS = 104
ATTR_REGISTERS = 96
# The bits of ``flags``.
ATTR_DISABLED = 1 << 0
ATTR_INHERIT = 1 << 1
ATTR_EXCLUDE_KERNEL = 1 << 5
# The last bit of the flags and of sample_type, which no kernel defines.
ATTR_RESERVED = 1 << 63

PERF_TYPE_SOFTWARE = 1
PERF_TYPE_TRACEPOINT = 2
PERF_COUNT_SW_DUMMY = 9

PERF_SAMPLE_IP = 1 << 0
PERF_SAMPLE_TID = 1 << 1
PERF_SAMPLE_PERIOD = 1 << 8
PERF_SAMPLE_RAW = 1 << 10
PERF_SAMPLE_REGS_INTR = 1 << 18

# Every kind of record starts with struct perf_event_header: type (4), misc (2), size (2).
PERF_RECORD_LOST = 2
PERF_RECORD_SAMPLE = 9
PERF_RECORD_MISC_KERNEL = 1

PERF_EVENT_IOC_ENABLE = 0x2400
PERF_EVENT_IOC_DISABLE = 0x2401
PERF_EVENT_IOC_RESET = 0x2403
PERF_EVENT_IOC_SET_FILTER = 0x40082406
PERF_EVENT_IOC_SET_BPF = 0x40042408

PERF_FLAG_FD_CLOEXEC = 8

# struct perf_event_mmap_page: offsets of head, tail and start of the data.
DATA_HEAD = 1024
DATA_TAIL = 1032
DATA_OFFSET = 1040

# perf_trace_buf_alloc(): the limit of a record with common fields and padding to 8.
PERF_MAX_TRACE_SIZE = 8192
