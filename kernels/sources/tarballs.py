"""Upstream's tarballs: from a directory that the user filled, else from kernel.org or a mirror."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from host.progress import Progress
from kernels.catalog.entries import Source
from kernels.catalog.versions import named, order, tarball_of, wants
from kernels.errors import SourceUnavailable
from kernels.sources.mirror import KERNEL_ORG, Mirror
from kernels.sources.mirror import VARIABLE as MIRROR
from kernels.sources.versions_offered import Offer
from kernels.store.store import Store

VARIABLE = "UEVT_TARBALLS"
TOOLS = ("gzip", "setpriv", "tar", "xz")


class Unseen(SourceUnavailable):
    """Not here; whether the mirror has it is not known, for it was not asked."""


class Tarballs:
    """The tarballs of a series, those of the directory UEVT_TARBALLS names first: an `Origin`."""

    def __init__(self, source: Source, store: Store, progress: Progress) -> None:
        self._source = source
        self._mirror = Mirror.configured(store, progress)

    def at_hand(self) -> tuple[Offer, ...]:
        """Every version that is in the directory, the newest first."""
        versions: dict[str, tuple[tuple[int, ...], Path]] = {}
        for file in _directory_listing():
            if (match := tarball_of(file.name)) and wants(self._source, match):
                versions[match[1]] = (order(match), file)
        newest_first = sorted(versions.items(), key=lambda item: item[1][0], reverse=True)
        return tuple(
            Offer(self._source.package, version, fetch_mib=0, fetch=partial(_at, file))
            for version, (_, file) in newest_first
        )

    def asked_anew(self) -> Sequence[Offer]:
        """What is there and what the mirror offers.  Raises SourceUnavailable."""
        try:
            return (*self.at_hand(), *self._mirror.offers(self._source))
        except SourceUnavailable as error:
            raise SourceUnavailable(f"{self._directory()}, and {error}", self._mend()) from error

    def unavailable(self) -> SourceUnavailable:
        """The error when neither the directory nor the mirror has any of the series."""
        return SourceUnavailable(
            f"{self._directory()}, nor has {self._mirror.base} any", self._mend()
        )

    def unseen(self, kernel: str) -> Unseen:
        """What is to be said before the mirror was asked."""
        return Unseen(self._directory(), f"uevt kernels build {kernel} asks {self._mirror.base}")

    def _directory(self) -> str:
        """What is wrong with the directory."""
        chosen = os.environ.get(VARIABLE)
        if not chosen:
            return f"no {named(self._source)} is at hand ({VARIABLE} is not set)"
        return f"{VARIABLE}={chosen} lacks {named(self._source)}"

    def _mend(self) -> str:
        return (
            f"set {MIRROR} to a copy of {KERNEL_ORG} that answers and has it,"
            f" or {VARIABLE} to a directory that has {named(self._source)}"
        )


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
