"""Upstream's tarballs, from a directory that the user filled: linux-5.19.17.tar.xz and the like."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kernels.catalog import NEWEST, Source
from kernels.errors import SourceUnavailable
from kernels.offers import Offer

VARIABLE = "UEVT_TARBALLS"
TOOLS = ("gzip", "setpriv", "tar", "xz")

_FILE = re.compile(r"linux-((\d+)\.(\d+)(?:\.(\d+))?(?:-rc(\d+))?)\.tar\.(?:gz|xz)")
_RELEASED = 1 << 30


class Tarballs:
    """The tarballs of a series in the directory that UEVT_TARBALLS names: an `Origin`."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def at_hand(self) -> tuple[Offer, ...]:
        """Every version that is there, the newest first."""
        versions: dict[str, tuple[tuple[int, ...], Path]] = {}
        for file in _directory_listing():
            if (match := _FILE.fullmatch(file.name)) and self._wants(match):
                versions[match[1]] = (_order(match), file)
        newest_first = sorted(versions.items(), key=lambda item: item[1][0], reverse=True)
        return tuple(
            Offer(self._source.package, version, fetch_mib=0, fetch=partial(_at, file))
            for version, (_, file) in newest_first
        )

    def asked_anew(self) -> Sequence[Offer]:
        """The same: nothing is downloaded."""
        return self.at_hand()

    def unavailable(self) -> SourceUnavailable:
        """The error when the directory has none of the series."""
        series = "*" if self._source.series == NEWEST else f"{self._source.series}[.N]"
        wanted = f"linux-{series}.tar.xz"
        named = os.environ.get(VARIABLE)
        if not named:
            what, mend = (
                f"{VARIABLE} is not set",
                f"set {VARIABLE} to a directory that has {wanted}",
            )
        else:
            what, mend = f"{VARIABLE}={named} lacks {wanted}", "put it there (or the .tar.gz)"
        return SourceUnavailable(what, mend)

    def _wants(self, match: re.Match[str]) -> bool:
        return self._source.series in (NEWEST, f"{match[2]}.{match[3]}")


def _at(file: Path, _: Path) -> Path:
    """What `fetch` is where there is nothing to fetch."""
    return file


def _directory_listing() -> list[Path]:
    directory = os.environ.get(VARIABLE)
    if not directory:
        return []
    try:
        return sorted(Path(directory).iterdir())
    except OSError:
        return []


def _order(match: re.Match[str]) -> tuple[int, ...]:
    """Release candidates come before the release, which has no sublevel."""
    major, minor, sublevel, candidate = (match[number] for number in (2, 3, 4, 5))
    return (int(major), int(minor), int(sublevel or 0), int(candidate or _RELEASED))
