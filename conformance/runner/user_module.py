"""A module of the user, which is loaded before the first case."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class UserModule:
    """A module: its name in the kernel, its file on the host, and its source."""

    name: str
    file: Path
    source: str
