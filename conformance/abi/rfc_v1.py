"""Numbers and words of the first version of user_events, which no release has.

Source: "user_events: Enable user processes to create and write to trace events", a patch
sent for review on 5 October 2021, while 5.15 was made.  Where nothing is said here,
``layouts`` and ``grammar`` hold for it as well.
"""

from __future__ import annotations

from conformance.abi.uapi import Layout, Member

# The argument of both is a string; user_events_data takes no structure yet.  The number for
# deleting is that of the releases, the one for registering is not: nothing is written back.
DIAG_IOCSREG = 0x40082A00
DIAG_IOCSDEL = 0x40082A01
# _IO: the size of the common fields, by which dynamic data have to be located.
DIAG_IOCQLOCOFFSET = 0x2A02

# USER_EVENTS_PREFIX: of commands and lines of dynamic_events.
PREFIX = "ue:"
# user_event_parse_fields() and user_event_parse_field().
FIELD_SEPARATOR = ";"
COLUMN_SEPARATOR = "\t"
# FIELD_DEPTH_SIZE, FIELD_DEPTH_OFFSET: the columns that hold numbers; of a field there must
# be those up to the size.
SIZE_COLUMN = 2
OFFSET_COLUMN = 3
# A field of this type is none: its second column is the print fmt.
PRINT_FMT = "print_fmt"
# trace_events.c:f_show: how the kernel prints a string that there is none of.
NO_PRINT_FMT = "(null)"

# struct user_bpf_context: where the data are in the program that writes, not a copy.
USER_BPF_CONTEXT = Layout("user_bpf_context", 16, (Member("udatalen", 0, 4), Member("udata", 8, 8)))
