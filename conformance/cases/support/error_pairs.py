"""Calls with two errors: which of the two the kernel returns."""

from collections.abc import Iterable, Sequence

# Errors in the order in which the kernel checks, each with its errno.
Order = Sequence[tuple[str, str]]


def pairs(
    order: Order, apart: Iterable[tuple[str, str]] = (), *, among: str = "", without: str = ""
) -> dict[str, tuple[str, str, str]]:
    """Variants of two errors each: the earlier, the later, and the errno of the earlier.

    ``apart`` lists pairs that cannot occur together; pairs with equal errno are left out.
    ``among`` is part of every pair, ``without`` of none.
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
