"""Grammar of registration strings: types with sizes and formats, and limits.

Source: kernel/trace/trace_events_user.c, functions named with each table; unchanged from 5.18 to
7.3.
"""

from __future__ import annotations

from msgspec import Struct

# strndup_user() limit of user_events_ioctl_reg() and _del(), in bytes with the NUL.
MAX_EVENT_DESC = 512
# user_field_array_size(): the largest char array, and the size of its text buffer.
MAX_FIELD_ARRAY_SIZE = 1024
ARRAY_TEXT_BUFFER = 8
# sizeof(struct trace_entry): the common fields of a record, in bytes.
TRACE_ENTRY_SIZE = 8
# trace.c:trace_parse_run_command(): size of the line buffer of dynamic_events, in bytes.
COMMAND_BUFFER = 4096

SYSTEM = "user_events"
MULTI_SYSTEM = "user_events_multi"
PREFIX = "u:"


class ScalarType(Struct, frozen=True):
    """A type by its exact text: size in bytes and printf conversion."""

    size: int
    conversion: str


# user_field_size() and user_field_format().
SCALARS = {
    "s64": ScalarType(8, "%lld"),
    "u64": ScalarType(8, "%llu"),
    "s32": ScalarType(4, "%d"),
    "u32": ScalarType(4, "%u"),
    "int": ScalarType(4, "%d"),
    "unsigned int": ScalarType(4, "%u"),
    "s16": ScalarType(2, "%d"),
    "u16": ScalarType(2, "%u"),
    "short": ScalarType(2, "%d"),
    "unsigned short": ScalarType(2, "%u"),
    "s8": ScalarType(1, "%d"),
    "u8": ScalarType(1, "%u"),
    "char": ScalarType(1, "%d"),
    "unsigned char": ScalarType(1, "%u"),
}
ARRAY_PREFIXES = ("char[", "unsigned char[")
LOCATION_PREFIXES = ("__data_loc ", "__rel_loc ")
LOCATION_SIZE = 4
STRUCT_PREFIX = "struct "
# user_event_parse_field(): prefixes of types that extend to the next space, in order of checks.
SPACED_PREFIXES = (
    "unsigned ",
    "struct ",
    "__data_loc unsigned ",
    "__data_loc ",
    "__rel_loc unsigned ",
    "__rel_loc ",
)
STRING_CONVERSION = "%s"
# "Unknown, likely struct, allowed treat as 64-bit" (user_field_format).
OTHER_CONVERSION = "%llu"
