"""Consoles of guests, as they were captured."""

from __future__ import annotations

from pathlib import Path

LOGS = Path(__file__).parents[2] / "fixtures" / "console"


def read(log: str) -> str:
    """The text of a console."""
    return (LOGS / f"{log}.log").read_text()
