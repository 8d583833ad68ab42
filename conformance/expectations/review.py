"""Find expectations that no case, kernel or run needs.

An unneeded expectation hides the day on which its deviation comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.expectations.condition import KernelContext
from conformance.expectations.loader import Expectation
from conformance.results.case_result import CONFORMING, Blame, CaseResult, Outcome

_DEVIATING = frozenset({Outcome.FAIL, Outcome.XFAIL})


class Problem(StrEnum):
    """Why an expectation is not needed."""

    NO_CASE = "no_case"
    NO_KERNEL = "no_kernel"
    FIXED = "fixed"
    GONE = "gone"
    OTHERWISE = "otherwise"
    NOT_RUN = "not_run"

    @property
    def sentence(self) -> str:
        """One clause for a report."""
        return _WORDS[self][0]

    @property
    def short(self) -> str:
        """A few words for a list."""
        return _WORDS[self][1]


_WORDS = {
    Problem.NO_CASE: ("there is no such case", "no such case"),
    Problem.NO_KERNEL: ("its `when` matches no kernel of the catalog", "no such kernel"),
    Problem.FIXED: ("its `when` matches kernels that have its fixed_by commit", "fixed"),
    Problem.GONE: ("its case ran and did not deviate", "did not deviate"),
    Problem.OTHERWISE: (
        "its case deviates, but no mismatch fits step, field and pattern",
        "deviates otherwise",
    ),
    Problem.NOT_RUN: ("it applies to this kernel, but its case did not run", "did not run"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """An unneeded expectation; ``where`` names the kernels, variants or files."""

    entry: Expectation
    problem: Problem
    where: str

    def __str__(self) -> str:
        return f"{self.entry.case}: {self.problem.sentence}: {self.where}"


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A run of ``kernel`` for review; ``context`` gives the ABI that a case was judged by."""

    kernel: str
    context: Callable[[Iterable[str]], KernelContext]
    cases: Mapping[str, CaseResult]

    def applicable(self, entry: Expectation) -> list[CaseResult]:
        """The results that can confirm or refute an expectation."""
        return [case for case in self.cases.values() if self._applies(entry, case)]

    def _applies(self, entry: Expectation, case: CaseResult) -> bool:
        if not entry.about(case.id) or not entry.when.holds(self.context(case.adapted)):
            return False
        by_kernel = case.outcome in _DEVIATING and case.blame is Blame.KERNEL
        return case.outcome in CONFORMING or by_kernel


def unused(entries: Iterable[Expectation], runs: Sequence[Evaluated]) -> Iterator[Finding]:
    """Expectations that applied to a run and covered no mismatch, or only some variants."""
    for entry in entries:
        gone: list[str] = []
        partly: list[str] = []
        otherwise: list[str] = []
        variants: set[str] = set()
        for run in runs:
            applicable = run.applicable(entry)
            right = {case.id for case in applicable if case.outcome in CONFORMING}
            variants |= right
            if any(entry.covers(each) for case in applicable for each in case.mismatches):
                partly += [run.kernel] * bool(right)
            elif applicable:
                (gone if len(right) == len(applicable) else otherwise).append(run.kernel)
        if gone:
            yield Finding(entry, Problem.GONE, ", ".join(gone))
        if partly:
            where = f"{', '.join(partly)}, in {', '.join(sorted(variants))}"
            yield Finding(entry, Problem.GONE, where)
        if otherwise:
            yield Finding(entry, Problem.OTHERWISE, ", ".join(otherwise))


def not_run(entries: Iterable[Expectation], run: Evaluated) -> Iterator[Finding]:
    """Expectations for the kernel of a full run whose cases did not run."""
    for entry in entries:
        if not any(map(entry.about, run.cases)) and entry.when.holds(run.context(())):
            yield Finding(entry, Problem.NOT_RUN, run.kernel)


def pointless(
    entries: Iterable[Expectation],
    cases: Collection[str],
    kernels: Sequence[KernelContext],
    fixes: Mapping[str, str],
) -> Iterator[Finding]:
    """Expectations that no run can need.

    ``cases`` are the ids of all functions and variants, ``kernels`` those of the catalog;
    ``fixes`` maps the title of a commit to the switch that it turns on.
    """
    for entry in entries:
        if entry.case not in cases:
            yield Finding(entry, Problem.NO_CASE, entry.file.name)
        applicable = [kernel for kernel in kernels if entry.when.holds(kernel)]
        if not applicable:
            yield Finding(entry, Problem.NO_KERNEL, str(entry.when))
        switch = fixes.get(entry.fixed_by)
        if switch and any(switch in kernel.switches for kernel in applicable):
            yield Finding(entry, Problem.FIXED, f"write when = {entry.when} and switch != {switch}")
