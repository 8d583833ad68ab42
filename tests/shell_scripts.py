"""Shell scripts that replace programs of the host."""

from __future__ import annotations

from pathlib import Path


def write_script(file: Path, body: str) -> Path:
    """An executable script."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


def lines_of(file: Path) -> list[str]:
    """The lines of a log, none if it was never written."""
    return file.read_text().splitlines() if file.exists() else []
