"""Offers of sources: versions, and the choice among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from kernels.errors import SourceUnavailable


class Offer(Struct, frozen=True):
    """A source in one version.

    `fetch` returns the path of the tarball, which may be in the given scratch directory and takes
    `fetch_mib` of space there.
    """

    package: str
    version: str
    fetch_mib: int
    fetch: Callable[[Path], Path]


class Origin(Protocol):
    """A place that offers the source of a catalog entry."""

    def at_hand(self) -> Sequence[Offer]:
        """The known offers, the best first, without network access."""

    def updated(self) -> Sequence[Offer]:
        """The offers, queried again over the network if that is possible."""

    def unavailable(self) -> SourceUnavailable:
        """The error if nothing is offered."""


def choose(offered: Sequence[Offer], revision: str | None) -> Offer | None:
    """The first offer, or that of a revision (see `matching`)."""
    version = matching([offer.version for offer in offered], revision)
    return next((offer for offer in offered if offer.version == version), None)


def matching(versions: Sequence[str], revision: str | None) -> str | None:
    """The first version, or that of a revision.

    A revision matches a version that it is, or that it is the start of up to a separator
    ("6.12.115-2" is 6.12.115-2~deb12u1).
    """
    if revision is None:
        return versions[0] if versions else None
    start = re.compile(re.escape(revision) + r"(?![0-9A-Za-z])")
    exact = [version for version in versions if version == revision]
    begun = [version for version in versions if start.match(version)]
    return next(iter(exact + begun), None)
