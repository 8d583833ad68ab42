"""A module of the user, which is loaded before the first case."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class UserModule(Struct, frozen=True):
    """A module: its name in the kernel, its file on the host, and its source."""

    name: str
    file: Path
    source: str
