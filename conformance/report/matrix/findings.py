"""docs/findings.md as data: the known disagreements between kernel and documentation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[3] / "docs" / "findings.md"

_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)
# `surface.name`, or `surface.name…` for all ids with this prefix.
_NAMED = re.compile(r"`([a-z0-9_-]+\.[a-z0-9_.-]*)(…?)`")


@dataclass(frozen=True, slots=True)
class Finding:
    """One section: heading, text in Markdown, and the cases that it names."""

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


def read_findings(path: Path = FILE) -> list[Finding]:
    """The sections in order; empty if the documentation is not installed."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return []
    parts = _HEADING.split(text)[1:]
    return [_finding(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]


def _finding(title: str, text: str) -> Finding:
    named = _NAMED.findall(text)
    return Finding(
        title,
        text.strip(),
        frozenset(name for name, more in named if not more),
        tuple(name for name, more in named if more),
    )
