"""Filters: matching and errors."""

from __future__ import annotations

import pytest

from conformance.abi.profile import profile_for
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.events import Event
from conformance.model.text import definition, filter_parser

FIELDS = definition.parse_fields(
    "u32 a; s16 b; char[4] c; __rel_loc char[] r; __data_loc char[] d; struct s e 20",
    profile_for("6.12"),
)
EVENT = Event(0, "e", FIELDS, 0, "e", self_reference=True)
RECORD = (
    bytes(8)
    + b"\x41\0\0\0\xff\xffhi\0x"
    # 24 bytes after the word, and from the start of the record.
    + b"\x18\0\3\0\x2e\0\3\0"
    + bytes(20)
    + b"hi\0"
)
NEWER, OLDER = profile_for("6.12"), profile_for("6.1")


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("a == 65", True),
        ("a != 65", False),
        ("a > 64", True),
        ("a < 65", False),
        ("b < 0", True),
        ("b == -1", True),
        (' c == "hi" ', True),
        ('c != "hi"', False),
        ('c == "h"', False),
        ('r == "hi"', True),
        ('d == "hi"', True),
        ("a == 65 && b == 1", False),
        ("a == 65 && b == 1 || b == -1", True),
        ("a == 1 && (b == 1 || b == -1)", False),
        ("!(a == 1 || b == 1)", True),
        ("a & 64", True),
        ("a <= 64", False),
        ("a == 0x41", True),
        ("b >= -1", True),
        ("common_pid > 1", True),
        ("common_pid == 1", False),
        ('COMM != "nobody"', True),
        # A field of 20 bytes is not compared.
        ("e == 0", False),
        ("e != 0", False),
        ('c ~ "h*"', True),
        # The padding after the text counts.
        ('c ~ "*i"', False),
        ('r ~ "*i"', True),
        ('d ~ "h?"', True),
        ('d ~ "!h*"', False),
    ],
)
def test_records_that_pass_a_filter(text: str, passes: bool) -> None:
    assert filter_parser.parse(text, EVENT.fields, NEWER).matches(RECORD) is passes


@pytest.mark.parametrize(
    ("text", "errno", "position"),
    [
        ("z == 1", "EINVAL", 2),
        ('a == "x"', "EINVAL", 6),
        ('c < "x"', "EINVAL", 5),
        ('e == "x"', "EINVAL", 6),
        ("c == 1", "EINVAL", 6),
        ("a", "EINVAL", 2),
        ("a == 1 b", "EPERM", 7),
        ("a == 1)", "EPERM", 6),
        ("(a == 1", "ENOENT", 0),
        ("(a == 1) && ((b == 1)", "ENOENT", 12),
        ("a == 'x", "ESRCH", 5),
        ("", "EINVAL", 0),
    ],
)
def test_an_invalid_filter_is_refused_at_a_position(text: str, errno: str, position: int) -> None:
    with pytest.raises(filter_parser.FilterError, match=errno) as found:
        filter_parser.parse(text, EVENT.fields, NEWER)
    assert found.value.position == position


@pytest.mark.parametrize("text", ["cpu == 1", "a == 1 &&", "c.ustring == 'x'", 'comm == "bash"'])
def test_unused_filter_syntax_is_not_modelled(text: str) -> None:
    with pytest.raises(NotModelled):
        filter_parser.parse(text, EVENT.fields, NEWER)


@pytest.mark.parametrize("text", ['c == "hi"', 'r == "hi"', 'd == "hi"'])
def test_no_field_is_a_string_before_6_4(text: str) -> None:
    with pytest.raises(Errno, match="EINVAL"):
        filter_parser.parse(text, EVENT.fields, OLDER)
