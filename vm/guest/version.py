"""Version of the agent: checksums of its sources, computed by both ends."""

from __future__ import annotations

import os
from binascii import crc32

#: The native engine; its library contains the checksum of its sources.
NATIVE = "guest/native"


def versions() -> dict[str, int]:
    """The checksums of all present Python files, by path relative to the package vm."""
    names = [f"guest/{name}" for name in _listing("guest") if name.endswith(".py")]
    return {name: _checksum([name]) for name in ("wire.py", *names)}


def native_version() -> int:
    """The checksum of the C sources of the native engine."""
    return checksum_of(NATIVE)


def checksum_of(directory: str) -> int:
    """The checksum of all files in a directory; its path is absolute or relative to vm."""
    return _checksum([f"{directory}/{name}" for name in sorted(_listing(directory))])


def _listing(directory: str) -> list[str]:
    return os.listdir(os.path.join(_VM, directory))


def _checksum(names: list[str]) -> int:
    checksum = 0
    for name in names:
        with open(os.path.join(_VM, name), "rb") as file:
            checksum = crc32(file.read(), checksum)
    return checksum


_VM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
