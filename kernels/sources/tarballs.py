"""Upstream's tarballs: from a directory of the user, else from kernel.org or a mirror."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from host.progress import Progress
from kernels.catalog.entries import Source
from kernels.errors import SourceUnavailable, UserMistake
from kernels.sources.mirror import KERNEL_ORG, Mirror
from kernels.sources.mirror import VARIABLE as MIRROR
from kernels.sources.offers import Offer
from kernels.sources.tarball_names import named, newest_first
from kernels.store.store import Store

VARIABLE = "UEVT_TARBALLS"
TOOLS = ("gzip", "setpriv", "tar", "xz")


class NotFetched(SourceUnavailable):
    """Not on this host; the mirror has not been queried."""


class Tarballs:
    """The tarballs of a series, those in UEVT_TARBALLS first: an `Origin`."""

    def __init__(self, source: Source, store: Store, progress: Progress) -> None:
        self._source = source
        self._mirror = Mirror.configured(store, progress)

    def at_hand(self) -> tuple[Offer, ...]:
        """Every version in the directory, the newest first.  Raises UserMistake."""
        files = {file.name: file for file in _directory_listing()}
        return tuple(
            Offer(self._source.package, version, fetch_mib=0, fetch=partial(_at, files[name]))
            for version, name in newest_first(self._source, files).items()
        )

    def updated(self) -> Sequence[Offer]:
        """Offers of directory and mirror.  Raises SourceUnavailable, UserMistake."""
        try:
            return (*self.at_hand(), *self._mirror.offers(self._source))
        except SourceUnavailable as error:
            raise SourceUnavailable(f"{self._lacking()}, and {error}", self._hint()) from error

    def unavailable(self) -> SourceUnavailable:
        """The error if neither directory nor mirror has the series."""
        return SourceUnavailable(
            f"{self._lacking()}, nor has {self._mirror.base} any", self._hint()
        )

    def not_fetched(self, kernel: str) -> NotFetched:
        """The error before the mirror is queried."""
        return NotFetched(
            self._lacking(), f"uevt kernels build {kernel} queries {self._mirror.base}"
        )

    def _lacking(self) -> str:
        """What the directory lacks."""
        chosen = os.environ.get(VARIABLE)
        if not chosen:
            return f"no {named(self._source)} is on this host ({VARIABLE} is not set)"
        return f"{VARIABLE}={chosen} lacks {named(self._source)}"

    def _hint(self) -> str:
        return (
            f"set {MIRROR} to a mirror of {KERNEL_ORG} that has it,"
            f" or {VARIABLE} to a directory that has {named(self._source)}"
        )


def _at(file: Path, _: Path) -> Path:
    """`fetch` of a file that is already here."""
    return file


def _directory_listing() -> list[Path]:
    """The files of the directory, none if it is not set.  Raises UserMistake."""
    directory = os.environ.get(VARIABLE)
    if not directory:
        return []
    try:
        return sorted(Path(directory).iterdir())
    except OSError as error:
        what = f"{VARIABLE}={directory}: {error.strerror}"
        raise UserMistake(what, "name a directory of tarballs, or unset it") from error
