"""Plain text for people: printable, at most 100 columns, coloured on terminals."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import TextIOWrapper
from typing import TextIO

WIDTH = 100
"""Columns no line of a report exceeds."""

_COLOURS = {"good": "32", "bad": "31", "notable": "33"}


def printable(text: str) -> str:
    """``text`` with everything but printable characters and newlines escaped.

    A kernel may print anything: escape sequences would move the cursor of the reader's terminal,
    and XML forbids most control characters.
    """
    return "".join(each if each == "\n" or each.isprintable() else _escaped(each) for each in text)


def one_line(text: str) -> str:
    """``text`` printable and on one line, runs of white space replaced by one space."""
    return printable(" ".join(text.split()))


def cut(text: str, width: int) -> str:
    """A text of at most so many characters, with … for what is left out."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def first(items: Sequence[str], most: int, more: str = "and {} more") -> list[str]:
    """At most so many items, and how many more there are."""
    rest = len(items) - most
    return [*items[:most], *([more.format(rest)] if rest > 0 else [])]


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 case``, ``2 cases``."""
    return f"{number} {noun}{'s' * (number != 1)}"


def wrapped(text: str, *, indent: int = 0, hanging: int = 0, width: int = WIDTH) -> list[str]:
    """The lines of ``text`` within ``width``; continuations are indented by ``hanging`` more
    columns.

    Tabs become spaces; leading white space of a line is kept; a word longer than a line is cut.
    """
    lines: list[str] = []
    for line in printable(text.expandtabs()).splitlines() or [""]:
        margin = " " * (indent + len(line) - len(line.lstrip()))
        lines += textwrap.wrap(
            line.strip(),
            width,
            initial_indent=margin,
            subsequent_indent=margin + " " * hanging,
            break_on_hyphens=False,
        ) or [""]
    return lines


def folded(lines: Iterable[str], *, indent: int) -> list[str]:
    """Lines of a log, cut at WIDTH and continued, but not reflowed."""
    room = WIDTH - indent
    out: list[str] = []
    for line in lines:
        rest = printable(line.expandtabs())
        out.append(" " * indent + rest[:room])
        while rest := rest[room:]:
            out.append(" " * indent + rest[:room])
    return out


def use_colour(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether to colour output to ``stream``: NO_COLOR, then FORCE_COLOR, then a terminal."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return is_terminal(stream, environment)


def is_terminal(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether ``stream`` is a terminal that is not dumb."""
    return stream.isatty() and environment.get("TERM", "") not in ("", "dumb")


def escape_unencodable(stream: TextIO) -> None:
    """Escape characters that the encoding of a stream lacks, instead of raising an error."""
    if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")


def discard(stream: TextIO) -> None:
    """Send what a stream has buffered, and what follows, to /dev/null: its reader has gone."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def complain(why: object) -> None:
    """Write a line to standard error.

    A full disk, or a reader that has gone, must not change the exit code that follows.
    """
    try:
        sys.stderr.write(f"uevt: {why}\n")
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


class Outlet:
    """A stream that is flushed after every text; a reader that goes away is ignored.

    ``escape`` replaces what the reader of the stream would interpret.
    """

    def __init__(self, stream: TextIO, escape: Callable[[str], str] = str) -> None:
        self._stream: TextIO | None = stream
        self._escape = escape

    def write(self, text: str) -> None:
        """Write and flush.  Raises OSError if the disk is full."""
        if self._stream is None:
            return
        try:
            self._stream.write(self._escape(text))
            self._stream.flush()
        except BrokenPipeError:
            discard(self._stream)
            self._stream = None


def coloured(text: str, colour: str, *, enabled: bool) -> str:
    """``text`` in the colour ``good``, ``bad`` or ``notable`` if ``enabled``."""
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if enabled else text


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that a misspelt one probably stands for."""
    from difflib import get_close_matches  # 10 ms that correct words do not need

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=cutoff)), None)


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
