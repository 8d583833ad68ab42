"""Which version of the agent this is: checksums of its sources, made alike on both ends."""

from __future__ import annotations

import os
from binascii import crc32

#: What an actor runs without an interpreter; the library of it knows the checksum.
NATIVE = "guest/native"


def versions() -> dict[str, int]:
    """The checksum of each file of Python that is here, by its name below the package vm."""
    names = [f"guest/{name}" for name in _listing("guest") if name.endswith(".py")]
    return {name: _checksum([name]) for name in ("wire.py", *names)}


def native_version() -> int:
    """The checksum of the sources in C."""
    return _checksum([f"{NATIVE}/{name}" for name in sorted(_listing(NATIVE))])


def _listing(directory: str) -> list[str]:
    return os.listdir(os.path.join(_VM, directory))


def _checksum(names: list[str]) -> int:
    checksum = 0
    for name in names:
        with open(os.path.join(_VM, name), "rb") as file:
            checksum = crc32(file.read(), checksum)
    return checksum


_VM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
