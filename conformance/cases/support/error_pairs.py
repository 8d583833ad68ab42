"""Calls with two mistakes at once: tables of which of the two is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# Mistakes in the order in which the kernel finds them, each with the error it is told by.
Order = Sequence[tuple[str, str]]


def pairs(
    order: Order, apart: Iterable[tuple[str, str]] = (), *, among: str = "", without: str = ""
) -> dict[str, tuple[str, str, str]]:
    """Variants of two mistakes each: the earlier, the later, and the error of the earlier.

    ``apart`` cannot hold together; where both give the same error nothing can be seen.
    ``among`` is one of every pair, ``without`` of none.
    """
    excluded = {frozenset(pair) for pair in apart}
    return {
        f"{first}-before-{second}": (first, second, errno)
        for place, (first, errno) in enumerate(order)
        for second, other in order[place + 1 :]
        if errno != other and frozenset((first, second)) not in excluded
        if not among or among in (first, second)
        if not without or without not in (first, second)
    }
