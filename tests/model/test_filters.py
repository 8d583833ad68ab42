"""Filters that the model refuses; what it accepts is compared with the kernel by the cases."""

from __future__ import annotations

import pytest

from conformance.abi.profile import profile_for
from conformance.model.errors import Errno, NotModelled
from conformance.model.text import definition, filter_parser

FIELDS = definition.parse_fields(
    "u32 a; s16 b; char[4] c; __rel_loc char[] r; __data_loc char[] d; struct s e 20",
    profile_for("6.12"),
)
NEWER, OLDER = profile_for("6.12"), profile_for("6.1")


@pytest.mark.parametrize("text", ["cpu == 1", "a == 1 &&", "c.ustring == 'x'", 'comm == "bash"'])
def test_unused_filter_syntax_is_not_modelled(text: str) -> None:
    with pytest.raises(NotModelled):
        filter_parser.parse(text, FIELDS, NEWER)


@pytest.mark.parametrize("text", ['c == "hi"', 'r == "hi"', 'd == "hi"'])
def test_no_field_is_a_string_before_6_4(text: str) -> None:
    with pytest.raises(Errno, match="EINVAL"):
        filter_parser.parse(text, FIELDS, OLDER)
