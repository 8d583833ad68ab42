"""Sources that can be had: in which versions, and how to choose one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernels.errors import SourceUnavailable


@dataclass(frozen=True, slots=True)
class Offer:
    """A source in one version.

    `fetch` leaves the tarball somewhere, in the scratch directory it is given if need be, and
    returns where; it takes `fetch_mib` of space there.
    """

    package: str
    version: str
    fetch_mib: int
    fetch: Callable[[Path], Path]


class Origin(Protocol):
    """Where the source of a catalog entry can come from."""

    def at_hand(self) -> Sequence[Offer]:
        """What is known to be offered, the best first, without asking anybody else."""

    def asked_anew(self) -> Sequence[Offer]:
        """The same, asked of whoever keeps it; no more than `at_hand` where that is the host."""

    def unavailable(self) -> SourceUnavailable:
        """The error when nothing is offered."""


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
