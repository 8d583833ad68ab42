"""What the expectations of this suite ask about a run that was kept."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from conformance.abi.profile import ProfileError, profile_for
from conformance.expectations.condition import KernelContext
from conformance.expectations.loader import Expectations
from conformance.expectations.review import Finding, Ran, not_run, unused
from conformance.results.run import KernelFacts, RunRecord


def ran(record: RunRecord) -> Ran:
    """A run as the review of expectations takes it."""
    kernel = record.head.kernel
    named = f"{kernel.id} ({kernel.release})" if kernel.release else kernel.id
    return Ran(
        named,
        lambda case: context_of(kernel, frozenset(case.adapted)),
        {case.id: case for case in record.cases},
        frozenset(each.case for each in record.contradictions),
    )


@cache
def context_of(kernel: KernelFacts, adapted: frozenset[str] = frozenset()) -> KernelContext:
    """What a condition can ask about a kernel, with switches that were measured otherwise."""
    try:
        profile = profile_for(kernel.profile, base=kernel.release or None)
    except ProfileError:
        # A run of another revision of the suite, which knew others.
        return KernelContext(kernel.release, kernel.profile, _flavour(kernel))
    release = kernel.release or str(profile.release)
    switches = profile.switches ^ adapted
    return KernelContext(release, profile.name, _flavour(kernel), switches)


def stale(record: RunRecord, expectations: Expectations, *, every: bool) -> Iterator[Finding]:
    """The expectations that a run shows to be of no use; ``every`` case was to run in it."""
    if record.head.self_check or record.not_built:
        return
    told = ran(record)
    yield from unused(expectations.entries, [told])
    if every and not record.missing:
        yield from not_run(expectations.entries, told)


def _flavour(kernel: KernelFacts) -> str:
    return kernel.id.partition("~")[2]
