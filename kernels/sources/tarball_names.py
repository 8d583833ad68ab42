"""Names and order of upstream's tarballs."""

from __future__ import annotations

import re

from kernels.catalog.entries import NEWEST, Source

_FILE = re.compile(r"linux-((\d+)\.(\d+)(?:\.(\d+))?(?:-rc(\d+))?)\.tar\.(?:gz|xz)")
_RELEASED = 1 << 30


def tarball_of(name: str) -> re.Match[str] | None:
    """The parts of a tarball's name, the whole version first; None for any other name."""
    return _FILE.fullmatch(name)


def wants(source: Source, match: re.Match[str]) -> bool:
    """Whether a tarball belongs to a source."""
    return source.series in (NEWEST, f"{match[2]}.{match[3]}")


def order(match: re.Match[str]) -> tuple[int, ...]:
    """A sort key: release candidates come before the release."""
    major, minor, sublevel, candidate = (match[number] for number in (2, 3, 4, 5))
    return (int(major), int(minor), int(sublevel or 0), int(candidate or _RELEASED))


def named(source: Source) -> str:
    """The names of a source's tarballs, for people."""
    series = "*" if source.series == NEWEST else f"{source.series}[.N]"
    return f"linux-{series}.tar.xz"
