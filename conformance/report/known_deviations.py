"""Which known deviations apply to a stored run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from conformance.abi.profile import ProfileError, profile_for
from conformance.expectations.condition import KernelContext
from conformance.expectations.loader import Expectations
from conformance.expectations.review import Evaluated, Finding, not_run, unused
from conformance.results.run import KernelFacts, RunRecord


def evaluated(record: RunRecord) -> Evaluated:
    """A run for the review of expectations."""
    kernel = record.head.kernel
    name = f"{kernel.id} ({kernel.release})" if kernel.release else kernel.id

    def context(adapted: Iterable[str]) -> KernelContext:
        return context_of(kernel, frozenset(adapted))

    return Evaluated(name, context, {case.id: case for case in record.cases})


@cache
def context_of(kernel: KernelFacts, adapted: frozenset[str] = frozenset()) -> KernelContext:
    """What a condition compares; ``adapted`` are the switches that differ from the profile."""
    flavour = kernel.id.partition("~")[2]
    try:
        profile = profile_for(kernel.profile, base=kernel.release or None)
    except ProfileError:
        # Written by another revision of the suite, with other profiles.
        return KernelContext(kernel.release, kernel.profile, flavour)
    release = kernel.release or str(profile.release)
    return KernelContext(release, profile.name, flavour, profile.switches ^ adapted)


def stale(record: RunRecord, expectations: Expectations, *, every: bool) -> Iterator[Finding]:
    """The expectations that a run shows to be unneeded; ``every`` case was selected in it."""
    if record.head.self_check or record.not_built:
        return
    run = evaluated(record)
    yield from unused(expectations.entries, [run])
    if every and not record.missing:
        yield from not_run(expectations.entries, run)
