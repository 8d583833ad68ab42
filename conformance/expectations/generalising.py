"""Finding the condition under which some kernels are meant and others are not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from conformance.expectations.condition import (
    Comparison,
    Condition,
    KernelContext,
    release_numbers,
)

# Comparisons that may have to be added; with more of them nobody would read the condition.
_MOST = 2


def covering(wanted: Sequence[KernelContext], unwanted: Sequence[KernelContext]) -> str | None:
    """A condition for kernels of which something was seen, and for no release beyond them.

    None where no condition tells them from the others.
    """
    releases = _releases(wanted)
    if not releases or len(releases) < len({each.release for each in wanted}):
        return None
    first, last = releases[0], releases[-1]
    text = f"release == {first}" if first == last else f"release >= {first} and release <= {last}"
    found = narrowed(Condition.parse(text), wanted, unwanted)
    return None if found is None else str(found)


def narrowed(
    condition: Condition, wanted: Sequence[KernelContext], unwanted: Sequence[KernelContext]
) -> Condition | None:
    """The condition with as few comparisons added as it takes to mean no unwanted kernel."""
    others = [each for each in unwanted if condition.holds(each)]
    candidates = [
        each for each in _candidates(wanted, others) if all(each.holds(one) for one in wanted)
    ]
    for number in range(_MOST + 1):
        for added in combinations(candidates, number):
            if not any(all(each.holds(other) for each in added) for other in others):
                kept = [each for each in condition.comparisons if not _implied(each, added)]
                return Condition((*kept, *added))
    return None


def _candidates(
    wanted: Sequence[KernelContext], unwanted: Sequence[KernelContext]
) -> Iterator[Comparison]:
    """What could tell them apart, the plainest first."""
    releases = _releases(unwanted)
    if releases:
        yield Comparison("release", "<", releases[0])
        yield Comparison("release", ">", releases[-1])
    for flavour in sorted({each.flavour for each in unwanted} - {""}):
        yield Comparison("flavour", "!=", flavour)
    for flavour in sorted({each.flavour for each in wanted} - {""}):
        yield Comparison("flavour", "==", flavour)
    known = {switch for each in (*wanted, *unwanted) for switch in each.switches}
    for sign in ("==", "!="):
        for switch in sorted(known):
            yield Comparison("switch", sign, switch)
    for release in releases:
        yield Comparison("release", "!=", release)
    for sign, kernels in (("!=", unwanted), ("==", wanted)):
        for profile in sorted({each.profile for each in kernels}):
            if not re.search(r"\s", profile):
                yield Comparison("profile", sign, profile)


def _implied(comparison: Comparison, added: Sequence[Comparison]) -> bool:
    """Whether a bound of the releases is one no more: a tighter one is added."""
    return comparison.subject == "release" and any(
        each.subject == "release" and each.sign[0] == comparison.sign[0] and each.sign in "<>"
        for each in added
    )


def _releases(contexts: Sequence[KernelContext]) -> list[str]:
    """Their releases as a condition writes them, without what is no release, in order."""
    numbers = {tuple(found) for each in contexts if (found := release_numbers(each.release))}
    return [".".join(map(str, each)) for each in sorted(numbers)]
