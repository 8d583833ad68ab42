"""Dated changes of matching: which definitions match an existing event."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents

case = surface(
    "dated",
    spec="trace_events_user.c",
    doc="Documentation/trace/user_events.rst@v6.12: Command Format: the fields of a definition, "
    "and when they are the same",
)


@case(
    spec="user_event_match, user_fields_match",
    doc="Documentation/trace/user_events.rst@v5.18: Deleting: silent about fields",
    profiles="5.18..6.0",
    switch="deletion_arguments_matched",
)
def test_deletion_arguments_matched(ue: UserEvents) -> None:
    """Other fields match no event; in the first kernels the name was enough."""
    ue.event("u32 a")
    found = ue.tracefs.command(f"-:{ue.name()} u64 b\n")
    # No event of that text, or one that is in use.
    assert found.errno == ue.dated("deletion_arguments_matched", since="ENOENT", before="EBUSY")


@case(
    spec="user_field_set_string, user_dyn_field_set_string",
    # The model does not format.
    needs="strings_formatted_safely",
    switch="strings_formatted_safely",
)
def test_strings_formatted_safely(ue: UserEvents) -> None:
    """A percent sign in a field is text; before 6.1 it was a format, and 5% equalled %."""
    ue.event("u8 a%%")
    found = ue.tracefs.command(f"-:{ue.name()} u8 a%5%\n")
    # No event of that text, or one that is in use.
    assert found.errno == ue.dated("strings_formatted_safely", since="ENOENT", before="EBUSY")


@case(
    spec="user_event_match, user_fields_match",
    # Without it nothing is compared.
    needs="deletion_arguments_matched",
    switch="struct_size_matched",
)
def test_struct_size_matched(ue: UserEvents) -> None:
    """The size of a struct is compared; before that no struct matched itself."""
    ue.event("struct s a 20")
    found = ue.tracefs.command(f"-:{ue.name()} struct s a 20\n")
    assert found.errno == ue.dated("struct_size_matched", since="EBUSY", before="ENOENT")


@case(
    spec="user_event_parse",
    doc="Documentation/trace/user_events.rst@v6.12: Command Format: the fields of a definition, "
    "and when they are the same; a name with other fields is refused",
    switch="arguments_matched",
)
def test_arguments_matched(ue: UserEvents) -> None:
    """A name in use with other fields is EADDRINUSE; before, the existing event was returned."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    again = data.register(ue.name() + " u64 b")
    assert again.errno == ue.dated("arguments_matched", since="EADDRINUSE", before="")


@case(spec="user_event_match", switch="null_arguments_matched")
def test_null_arguments_matched(ue: UserEvents) -> None:
    """A bare name is an event without fields; before, it matched every event of that name."""
    ue.event("u32 a")
    found = ue.tracefs.command(f"-:{ue.name()}\n")
    assert found.errno == ue.dated("null_arguments_matched", since="ENOENT", before="EBUSY")


@case(
    spec="insert_space_after_semis",
    profiles="6.4..",
    needs="arguments_matched",
    switch="unspaced_fields_match",
)
def test_unspaced_fields_match(ue: UserEvents) -> None:
    """Fields match without a space between them; before 6.10 they did not."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a;u32 b")
    again = data.register(ue.name() + " u32 a;u32 b")
    assert again.errno == ue.dated("unspaced_fields_match", since="", before="EADDRINUSE")
