"""docs/findings.md and docs/behaviours.md as data: bugs, and surprises for clients."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

_DOCS = Path(__file__).parents[3] / "docs"
FINDINGS = _DOCS / "findings.md"
BEHAVIOURS = _DOCS / "behaviours.md"

_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)
# A link to another page of docs/, which a report does not have beside it.
_LOCAL_LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+://)[^)]*\)")
# `surface.name`, or `surface.name…` for all ids with this prefix.
_NAMED = re.compile(r"`([a-z0-9_-]+\.[a-z0-9_.-]*)(…?)`")


class Finding(Struct, frozen=True):
    """One section: heading, text in Markdown without local links, and the cases it names."""

    title: str
    text: str
    cases: frozenset[str] = frozenset()
    beginnings: tuple[str, ...] = ()

    def names(self, id: str) -> bool:
        """Whether it names a case, or the function of a variant."""
        while id:
            if id in self.cases or id.startswith(self.beginnings):
                return True
            id = id.rpartition(".")[0]
        return False


def read_findings(*pages: Path) -> list[Finding]:
    """The sections of the pages in order, by default of both; empty if not installed."""
    found: list[Finding] = []
    for page in pages or (FINDINGS, BEHAVIOURS):
        try:
            text = page.read_text(encoding="utf-8")
        except OSError:
            continue
        parts = _HEADING.split(text)[1:]
        found += map(_finding, parts[::2], parts[1::2])
    return found


def _finding(title: str, text: str) -> Finding:
    named = _NAMED.findall(text)
    cases = frozenset(name for name, more in named if not more)
    text = _LOCAL_LINK.sub(r"\1", text.strip())
    return Finding(title, text, cases, tuple(name for name, more in named if more))
