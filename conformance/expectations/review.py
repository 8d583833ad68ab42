"""Which expectations are of no use: to no kernel, to no case, or to what the cases show.

An expectation that nobody needs hides the day on which its deviation comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.expectations.condition import KernelContext
from conformance.expectations.loader import Expectation
from conformance.results.case_result import Blame, CaseResult, Outcome

_RIGHT = frozenset({Outcome.PASS, Outcome.XPASS})
_DEVIATES = frozenset({Outcome.FAIL, Outcome.XFAIL})


class Problem(StrEnum):
    """What is wrong with an expectation."""

    NO_CASE = "no_case"
    NO_KERNEL = "no_kernel"
    FIXED = "fixed"
    GONE = "gone"
    OTHERWISE = "otherwise"
    NOT_RUN = "not_run"

    @property
    def sentence(self) -> str:
        """The same for people."""
        return _SENTENCES[self]

    @property
    def short(self) -> str:
        """The same in a few words."""
        return _SHORT[self]


_SENTENCES = {
    Problem.NO_CASE: "there is no such case",
    Problem.NO_KERNEL: "its `when` fits no kernel of the catalog",
    Problem.FIXED: "its `when` fits kernels that have what fixed_by names",
    Problem.GONE: "its case ran and did not deviate",
    Problem.OTHERWISE: "its case deviates, and no difference fits step, field and pattern",
    Problem.NOT_RUN: "it is meant for this kernel, and no case about it ran",
}
_SHORT = {
    Problem.NO_CASE: "no such case",
    Problem.NO_KERNEL: "for no kernel",
    Problem.FIXED: "fixed",
    Problem.GONE: "did not deviate",
    Problem.OTHERWISE: "deviates otherwise",
    Problem.NOT_RUN: "did not run",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """An expectation that is of no use; ``where`` says which kernels, cases or what else."""

    entry: Expectation
    problem: Problem
    where: str

    def __str__(self) -> str:
        return f"{self.entry.case}: {self.problem.sentence}: {self.where}"


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of a kernel: ``context`` tells what expectations ask, for a case's own switches.

    ``contradicted`` are the cases about switches that the kernel does not have as its profile.
    """

    kernel: str
    context: Callable[[CaseResult], KernelContext]
    cases: Mapping[str, CaseResult]
    contradicted: frozenset[str] = frozenset()


class Use(StrEnum):
    """What an expectation was for a run."""

    COVERS = "covers"
    GONE = "gone"
    OTHERWISE = "otherwise"
    PARTLY = "partly"  # it covers what some variants show, and others do not deviate
    NONE = "none"  # nothing was judged that it could be about


def use_of(entry: Expectation, ran: Ran) -> Use:
    """What an expectation was good for in a run."""
    meant = [case for case in ran.cases.values() if _meant(entry, ran, case)]
    covered = [case for case in meant if any(map(entry.covers, case.mismatches))]
    right = [case for case in meant if case.outcome in _RIGHT]
    if covered:
        return Use.PARTLY if right else Use.COVERS
    if not meant:
        return Use.NONE
    return Use.GONE if len(right) == len(meant) else Use.OTHERWISE


def unused(entries: Iterable[Expectation], runs: Sequence[Ran]) -> Iterator[Finding]:
    """Expectations that were meant for a kernel, and covered nothing of what a case showed."""
    for entry in entries:
        uses = {ran.kernel: use_of(entry, ran) for ran in runs}
        for use, problem in (
            (Use.GONE, Problem.GONE),
            (Use.PARTLY, Problem.GONE),
            (Use.OTHERWISE, Problem.OTHERWISE),
        ):
            kernels = [kernel for kernel, found in uses.items() if found is use]
            if not kernels:
                continue
            where = ", ".join(kernels)
            if use is Use.PARTLY:
                where += f", in {', '.join(_right_variants(entry, runs))}"
            yield Finding(entry, problem, where)


def not_run(entries: Iterable[Expectation], ran: Ran) -> Iterator[Finding]:
    """Expectations for this kernel about which no case ran, where all cases were to run."""
    for entry in entries:
        about = [case for case in ran.cases.values() if entry.about(case.id)]
        # What a context says beside the switches is the same for every case.
        nobody = CaseResult("uevt.run", "uevt", "quick", Outcome.PASS)
        if not about and entry.when.holds(ran.context(nobody)):
            yield Finding(entry, Problem.NOT_RUN, ran.kernel)


def pointless(
    entries: Iterable[Expectation],
    cases: Collection[str],
    kernels: Sequence[KernelContext],
    fixes: Mapping[str, str],
) -> Iterator[Finding]:
    """What is wrong whatever a kernel shows.

    ``cases`` are the ids of all functions and their variants, ``kernels`` those of the catalog;
    ``fixes`` names the switch that a commit of this title turns on.
    """
    for entry in entries:
        if entry.case not in cases:
            yield Finding(entry, Problem.NO_CASE, str(entry.file.name))
        meant = [kernel for kernel in kernels if entry.when.holds(kernel)]
        if not meant:
            yield Finding(entry, Problem.NO_KERNEL, str(entry.when))
        if switch := fixed_by(entry, meant, fixes):
            yield Finding(entry, Problem.FIXED, f"write when = {entry.when} and switch != {switch}")


def fixed_by(
    entry: Expectation, kernels: Iterable[KernelContext], fixes: Mapping[str, str]
) -> str | None:
    """The switch that an entry's fix turns on, if any of the kernels it is meant for has it."""
    switch = fixes.get(entry.fixed_by)
    fixed = any(entry.when.holds(each) and switch in each.switches for each in kernels)
    return switch if fixed else None


def _meant(entry: Expectation, ran: Ran, case: CaseResult) -> bool:
    """Whether a result can say anything of an expectation."""
    if not entry.about(case.id) or not entry.when.holds(ran.context(case)):
        return False
    if case.outcome in _RIGHT:
        return True
    return case.outcome in _DEVIATES and case.blame is Blame.KERNEL


def _right_variants(entry: Expectation, runs: Iterable[Ran]) -> list[str]:
    found = {
        case.id
        for ran in runs
        for case in ran.cases.values()
        if _meant(entry, ran, case) and case.outcome in _RIGHT
    }
    return sorted(found)
