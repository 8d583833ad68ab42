"""The file `format` of an event: trace_events.c:f_show."""

from __future__ import annotations

import re

from conformance.abi import grammar
from conformance.abi.profile import Generation, Profile
from conformance.model.state.events import Event
from conformance.model.text.definition import Field
from conformance.model.text.filters import COMMON_FIELDS

# The kernel chooses the id; View.STRUCTURE removes it on both sides.
_ID_LINE = "ID: 0"
# An array whose length was not set, up to its bracket.  f_show() leaves __data_loc types alone, and
# brackets in the name of a field.
_LENGTH = re.compile(r"(\tfield:(?!__data_loc)[^;]*\w\[)\](?=;)")


def text(event: Event, profile: Profile) -> str:
    """Common fields, own fields and print fmt, with a placeholder for the id."""
    common, own = (
        "".join(_line(field, profile) for field in fields)
        for fields in (COMMON_FIELDS, event.fields)
    )
    return (
        f"name: {event.tracepoint}\n{_ID_LINE}\nformat:\n{common}\n{own}\n"
        f"print fmt: {event.print_format(profile)}\n"
    )


def shows_any_length(profile: Profile) -> bool:
    """Whether the length of an array is uninitialised: a bug since there is such a length."""
    return profile.has("array_length_of_field") and not profile.fixed("format-array-leak")


def with_some_length(text: str) -> str | None:
    """The text with the uninitialised lengths of a kernel's bug, None if it shows no length."""
    shown, number = _LENGTH.subn(r"\g<1>6840832]", text)
    return shown if number else None


def _line(field: Field, profile: Profile) -> str:
    place = f"offset:{field.offset};\tsize:{field.size};\tsigned:{int(field.signed)};"
    return f"\tfield:{_shown_type(field, profile)};\t{place}\n"


def _shown_type(field: Field, profile: Profile) -> str:
    """The type without its array part, which moves behind the name as a length, except for
    __data_loc.

    Text after the bracket is dropped, and a length of 0 shows as nothing.  Releases without
    `field->len` move the text of the array part unchanged.
    """
    before, bracket, rest = field.type.partition("[")
    if not bracket or field.type.startswith("__data_loc"):
        return f"{field.type} {field.name}"
    if not profile.has("array_length_of_field"):
        return f"{before} {field.name}[{rest}"
    # rfc-v1 has no length, which then is 0 (trace_define_field).
    known = profile.generation is not Generation.RFC_V1
    measured = (
        known
        and field.type.startswith(grammar.ARRAY_PREFIXES)
        and profile.fixed("format-array-length")
    )
    length = field.size if measured else ""
    return f"{before} {field.name}[{length}]"
