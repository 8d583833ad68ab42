"""Text that Markdown, as GitHub and GitLab read it, shows as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from host.text import one_line

# An underscore within a word is one, and most words here are names.
_MARKUP = re.compile(r"[\\`*\[\]<|~$&]|(?<!\w)_|_(?!\w)|^[-+#=>]")
# What forges make of a name or a number, whatever is before it.
_MENTION = re.compile(r"@(?=\w)|#(?=\w)")
_FENCE = re.compile(r"`{3,}")


def escaped(text: str) -> str:
    """One line that is taken for no markup, HTML or link, nor for the name of a person or issue."""
    plain = _MARKUP.sub(r"\\\g<0>", one_line(text)).replace("://", ":&#47;/")
    return _MENTION.sub("\\g<0>\N{ZERO WIDTH SPACE}", plain)


def fenced(lines: Iterable[str]) -> list[str]:
    """Lines as they are, whatever is in them."""
    inside = list(lines)
    longest = max((len(run) for line in inside for run in _FENCE.findall(line)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}text", *inside, fence]
