"""Any registration strings, numbers and hash values; fixtures/definitions.toml has known ones."""

from __future__ import annotations

import pytest
from hypothesis import given

from conformance.abi import grammar
from conformance.abi.profile import profile_for
from conformance.model.errors import Errno, RawReturn
from conformance.model.state.events import EventTable
from conformance.model.text import definition
from conformance.model.text.definition import Command, parse_fields
from conformance.model.text.jhash import jhash
from conformance.model.text.numbers import parse_unsigned
from tests.cases.variants import PROFILE, client
from tests.model.generated import STEADY, arguments, fields


@STEADY
@given(arguments)
def test_shown_fields_parse_to_the_same_fields(text: str) -> None:
    try:
        made = parse_fields(text, PROFILE)
    except (Errno, RawReturn):
        return
    shown = "; ".join(field.text for field in made)
    assert parse_fields(shown if made else None, PROFILE) == made


@STEADY
@given(fields)
def test_a_line_of_dynamic_events_recreates_the_event(text: str) -> None:
    ue = client()
    data = ue.open_data()
    assert data.register(f"{ue.name()} {text}").errno == ""
    line = ue.tracefs.dynamic_events()
    again = Command.parse(line.removeprefix(grammar.PREFIX).removesuffix("\n"))
    assert again.name == ue.name()
    assert parse_fields(again.arguments, PROFILE) == parse_fields(text, PROFILE)
    assert ue.tracefs.command(line).errno == ""
    assert ue.tracefs.dynamic_events() == line


@STEADY
@given(fields)
def test_fields_are_adjacent(text: str) -> None:
    offset = grammar.TRACE_ENTRY_SIZE
    for field in parse_fields(text, PROFILE):
        assert field.offset == offset
        offset += field.size


@STEADY
@given(fields)
def test_a_definition_matches_only_itself(text: str) -> None:
    made = parse_fields(text, PROFILE)
    for abi in ("6.5", "6.12"):
        profile = profile_for(abi)
        shown = "; ".join(field.text for field in made) or None
        tokens = definition.registration_tokens(shown, profile)
        assert definition.fields_match(made, tokens, profile)
        more = [*tokens[:-1], f"{tokens[-1]};", "u8", "more"] if tokens else ["u8", "more"]
        assert not definition.fields_match(made, more, profile)


@STEADY
@given(arguments)
def test_a_refused_definition_creates_no_event(text: str) -> None:
    table = EventTable(PROFILE)
    refusal: Exception | None = None
    try:
        table.register(f"name {text}", 0, capable=True)
    except (Errno, RawReturn) as error:
        refusal = error
    match refusal:
        case None:
            (event,) = table.events
            assert event.min_size == sum(field.size for field in event.fields)
        case Errno(name=name):
            assert (name, table.events) == ("EINVAL", [])
        case RawReturn(value=value):
            assert -(1 << 31) <= value < 0
            assert table.events == []


# Those that no definition there has.
@pytest.mark.parametrize(
    ("text", "base", "value"),
    [
        ("0X14", 0, 20),
        ("20\n", 0, 20),
        ("024", 10, 24),
        ("4294967295", 10, 0xFFFFFFFF),
    ],
)
def test_numbers_are_parsed(text: str, base: int, value: int) -> None:
    assert parse_unsigned(text, base) == value


@pytest.mark.parametrize("text", ["0x", "1 ", " 1", "1_0", "4294967296", "++1"])
def test_invalid_numbers_are_refused(text: str) -> None:
    with pytest.raises(Errno, match="EINVAL"):
        parse_unsigned(text, 0)


# Check values published with lookup3.c (driver5).
@pytest.mark.parametrize(
    ("key", "initval", "value"),
    [
        (b"", 0, 0xDEADBEEF),
        (b"", 0xDEADBEEF, 0xBD5B7DDE),
        (b"Four score and seven years ago", 0, 0x17770551),
        (b"Four score and seven years ago", 1, 0xCD628161),
    ],
)
def test_jhash_matches_published_values(key: bytes, initval: int, value: int) -> None:
    assert jhash(key, initval) == value
