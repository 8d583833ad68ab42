"""The text of an event's file `format`: trace_events.c:f_show."""

from __future__ import annotations

from conformance.abi import grammar
from conformance.abi.profile import Generation, Profile
from conformance.model.state.events import Event
from conformance.model.text import definition

_COMMON_FIELDS = (
    ("unsigned short common_type", 0, 2, 0),
    ("unsigned char common_flags", 2, 1, 0),
    ("unsigned char common_preempt_count", 3, 1, 0),
    ("int common_pid", 4, 4, 1),
)
# The id of an event is the kernel's choice; View.STRUCTURE leaves it out on both sides.
_ID_LINE = "ID: 0"


def text(event: Event, profile: Profile) -> str:
    """The `format` file: common fields, own fields, print fmt.  The id is left open."""
    common = "".join(_format_line(*line) for line in _COMMON_FIELDS)
    own = "".join(
        _format_line(_shown_type(field, profile), field.offset, field.size, int(field.signed))
        for field in event.fields
    )
    return (
        f"name: {event.tracepoint}\n{_ID_LINE}\nformat:\n{common}\n{own}\n"
        f"print fmt: {event.print_format(profile)}\n"
    )


def _format_line(text: str, offset: int, size: int, signed: int) -> str:
    return f"\tfield:{text};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"


def _shown_type(field: definition.Field, profile: Profile) -> str:
    """The array part of a type becomes a length behind the name, except for __data_loc.

    Whatever follows the bracket is not shown; a length of 0 is shown as nothing.  Before
    fields had a length of their own the text of the type was moved, bracket and all.
    """
    before, bracket, rest = field.type.partition("[")
    if not bracket or field.type.startswith("__data_loc"):
        return f"{field.type} {field.name}"
    if not profile.has("array_length_of_field"):
        return f"{before} {field.name}[{rest}"
    # The first version knew no such number, which is 0 then (trace_define_field).
    known = profile.generation is not Generation.RFC_V1
    measured = known and field.type.startswith(grammar.ARRAY_PREFIXES)
    length = field.size if measured else ""
    return f"{before} {field.name}[{length}]"
