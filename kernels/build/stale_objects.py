"""How many objects make will compile, by the dependencies that kbuild has written down."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

# "source_kernel/fork.o := …" and "deps_kernel/fork.o := …" in a file of commands.
_NAMES = re.compile(r"^source_\S+ := (.+)$|^ +(\S+)", re.MULTILINE)
_OPTION = re.compile(r"\$\(wildcard include/config/(\w+)\)")


def compiled_objects(objects: Path) -> int:
    """The number of objects in a directory."""
    return sum(1 for _ in objects.rglob(".*.o.cmd"))


def stale_objects(objects: Path, options: Collection[str]) -> int:
    """The number of objects that are older than one of their sources, or depend on an option.

    `options` have changed since ("CONFIG_A").  Headers that make will generate are not foreseen.
    """
    changed = {option.removeprefix("CONFIG_") for option in options}

    @cache
    def time_of(name: str) -> int:
        file = objects / name  # an absolute name stays
        return file.stat().st_mtime_ns if file.is_file() else 0

    def stale(commands: Path) -> bool:
        target = commands.with_name(commands.name[1:].removesuffix(".cmd"))
        if not target.is_file():
            return True
        text = commands.read_text(encoding="utf-8", errors="replace")
        if changed and not changed.isdisjoint(_OPTION.findall(text)):
            return True
        made = target.stat().st_mtime_ns
        return any(time_of(source or name) > made for source, name in _NAMES.findall(text))

    return sum(map(stale, objects.rglob(".*.o.cmd")))
