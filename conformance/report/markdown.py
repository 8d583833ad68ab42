"""Escape text for Markdown as GitHub and GitLab render it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from host.text import one_line

# An underscore within a word is not markup, and most words here are names.
_MARKUP = re.compile(r"[\\`*\[\]<|~$&]|(?<!\w)_|_(?!\w)|^[-+#=>]")
# Mentions of people and issues, even after other characters.
_MENTION = re.compile(r"@(?=\w)|#(?=\w)")
_FENCE = re.compile(r"`{3,}")


def escaped(text: str) -> str:
    """One line without markup, HTML, links or mentions."""
    plain = _MARKUP.sub(r"\\\g<0>", one_line(text)).replace("://", ":&#47;/")
    return _MENTION.sub("\\g<0>\N{ZERO WIDTH SPACE}", plain)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def fenced(lines: Iterable[str]) -> list[str]:
    """Lines in a code block, whatever they contain."""
    inside = list(lines)
    longest = max((len(run) for line in inside for run in _FENCE.findall(line)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}text", *inside, fence]
