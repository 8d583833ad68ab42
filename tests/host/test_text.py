"""Plain text for people."""

from __future__ import annotations

import io

import pytest

from host.text import one_line, printable, use_colour, wrapped


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "expected"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "0"}, False),
        (Terminal(), {"TERM": "xterm", "FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
    ids=["terminal", "no-color", "dumb", "no-term", "pipe", "forced", "not-forced", "both"],
)
def test_colour_is_for_terminals(
    stream: io.StringIO, environment: dict[str, str], expected: bool
) -> None:
    assert use_colour(stream, environment) is expected


def test_unprintable_characters_are_escaped() -> None:
    assert printable("a\x1b[2J\r\x00\u202e\ud800\U000e0001\n\xe9") == (
        "a\\x1b[2J\\x0d\\x00\\u202e\\ud800\\U000e0001\n\xe9"
    )
    assert one_line(" two\n\tlines ") == "two lines"


def test_a_word_longer_than_a_line_is_cut() -> None:
    assert [len(line) for line in wrapped("x" * 250, indent=4)] == [100, 100, 62]
