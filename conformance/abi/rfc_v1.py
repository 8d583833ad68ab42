"""Facts of rfc-v1, the first version of user_events, which was never merged.

Source: "user_events: Enable user processes to create and write to trace events", sent for review
on 5 October 2021, during 5.15.  ``uapi`` and ``grammar`` apply to everything else.
"""

from __future__ import annotations

from conformance.abi.uapi import Layout, Member

# Both take a string; there is no structure yet.  DIAG_IOCSDEL has its later number; DIAG_IOCSREG
# differs, since nothing is written back.
DIAG_IOCSREG = 0x40082A00
DIAG_IOCSDEL = 0x40082A01
# _IO: returns the size of the common fields, which offsets of dynamic data include.
DIAG_IOCQLOCOFFSET = 0x2A02

# USER_EVENTS_PREFIX: starts commands and lines of dynamic_events.
PREFIX = "ue:"
# user_event_parse_fields() and user_event_parse_field().
FIELD_SEPARATOR = ";"
COLUMN_SEPARATOR = "\t"
# FIELD_DEPTH_SIZE, FIELD_DEPTH_OFFSET: columns with numbers; the size is mandatory.
SIZE_COLUMN = 2
OFFSET_COLUMN = 3
# The type of the column that holds the print fmt.
PRINT_FMT = "print_fmt"
# trace_events.c:f_show: how the kernel prints a NULL string.
NO_PRINT_FMT = "(null)"

# struct user_bpf_context: the address of the data in the writer, not a copy.
USER_BPF_CONTEXT = Layout("user_bpf_context", 16, (Member("udatalen", 0, 4), Member("udata", 8, 8)))
