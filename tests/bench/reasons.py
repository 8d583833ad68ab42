"""Reasons for what a measurement finds, kept in a TOML file.

A table has lists of places under their reason: `FUNCTION`, or `FUNCTION: TEXT` for what has that
text in it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

Reasons = Mapping[str, Sequence[str]]
"""Places under their reason."""


def read(file: Path) -> Mapping[str, Reasons]:
    """The tables of a file, by name."""
    return tomllib.loads(file.read_text())


def reason(function: str, text: str, reasons: Reasons) -> str:
    """The first reason for a text in a function, "" without one."""
    for why, places in reasons.items():
        for place in places:
            where, _, part = place.partition(": ")
            if where in (function, "*") and part in text:
                return why
    return ""
