"""How many objects make will compile, by the dependencies that kbuild has written down."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def compiled_objects(objects: Path) -> int:
    """The number of objects in a directory."""
    return sum(1 for _ in objects.rglob(".*.o.cmd"))


def stale_objects(objects: Path, files: Iterable[Path], options: Iterable[str]) -> int:
    """The number of objects that depend on one of the changed files or options ("CONFIG_A").

    `files` are sources, as make names them.  Headers that make will generate are not foreseen.
    """
    changed = set(map(os.fsencode, files))
    for option in options:
        # As in "$(wildcard include/config/A)".
        changed.add(f"include/config/{option.removeprefix('CONFIG_')})".encode())
    return sum(
        not changed.isdisjoint(commands.read_bytes().split())
        for commands in objects.rglob(".*.o.cmd")
    )
