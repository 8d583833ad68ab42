"""What a guest is put in order with."""

from __future__ import annotations

import pytest

from conformance.leftovers import _name_in


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("u:test", "test"),
        ("u:test u32 a; char[4] b", "test"),
        ("u: u32 a", ""),
        ("ue:test", "test"),
        ("ue:test;u32 a;u8 b", "test"),
        ("ue:test;u8 b (Used by ftrace)", "test"),
        ("ue:test (Used by ftrace perf other)", "test"),
        ("ue:test (Used by)", "test"),
        ("ue: test u32 a", " test u32 a"),
        ("ue:test (Used by me) (Used by perf)", "test (Used by me)"),
        ("ue:", ""),
    ],
)
def test_the_name_of_a_definition(line: str, name: str) -> None:
    assert _name_in(line) == name
