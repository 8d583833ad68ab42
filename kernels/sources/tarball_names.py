"""Names and order of upstream's tarballs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernels.catalog.entries import NEWEST, Source

_FILE = re.compile(r"linux-((\d+)\.(\d+)(?:\.(\d+))?(?:-rc(\d+))?)\.tar\.(?:gz|xz)")
_RELEASED = 1 << 30


def newest_first(source: Source, names: Iterable[str]) -> dict[str, str]:
    """Version to name of the tarballs that belong to a source; of equal versions the last name."""
    found = {}
    for name in names:
        match = _FILE.fullmatch(name)
        if match and source.series in (NEWEST, f"{match[2]}.{match[3]}"):
            found[match[1]] = match
    matches = sorted(found.items(), key=lambda item: _order(item[1]), reverse=True)
    return {version: match[0] for version, match in matches}


def _order(match: re.Match[str]) -> tuple[int, ...]:
    """A sort key: release candidates come before the release."""
    major, minor, sublevel, candidate = (match[number] for number in (2, 3, 4, 5))
    return (int(major), int(minor), int(sublevel or 0), int(candidate or _RELEASED))


def named(source: Source) -> str:
    """The names of a source's tarballs, for people."""
    series = "*" if source.series == NEWEST else f"{source.series}[.N]"
    return f"linux-{series}.tar.xz"
