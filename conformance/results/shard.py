"""A shard of a run: a part of its cases, judged on a machine of its own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from msgspec import Struct

_PART = re.compile(r"(\d+)/(\d+)")
SEPARATOR = "."
"""Joins the parts of a part: 2/3.1/2 is the first half of 2/3."""


class Shard(Struct, frozen=True):
    """A part of a selection.

    ``part`` is its name, such as 2/3; ``cases`` are the ids of its cases, sorted.  All shards of a
    selection have the same ``whole``, the number of its cases, and ``sha256``, the digest of their
    ids.  ``node`` is the name of the machine.  Raises ValueError for an invalid part.
    """

    part: str
    cases: tuple[str, ...]
    whole: int
    sha256: str
    node: str = ""

    def __post_init__(self) -> None:
        path(self.part)


def path(part: str) -> tuple[tuple[int, int], ...]:
    """A part as (number, of) pairs, the outermost first.  Raises ValueError."""
    found = [_PART.fullmatch(word) for word in part.split(SEPARATOR)]
    pairs = tuple((int(each[1]), int(each[2])) for each in found if each is not None)
    if len(pairs) != len(found) or not all(1 <= number <= of for number, of in pairs):
        raise ValueError(f"{part!r} is no shard: write 1/3, 2/3 and 3/3 for a third each")
    return pairs


def digest_of_ids(ids: Iterable[str]) -> str:
    """sha256 of a set of case ids, in hex."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()
