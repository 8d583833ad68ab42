"""When the outcome of a case changed, over the runs of a store.

Kernels are ordered by release, runs of one kernel by date.  Only unchanged kernels form ranges of
releases: a patch, variant, module or flavour says nothing about its release.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from msgspec import Struct, to_builtins

from conformance.report.history.flaky import Tally
from conformance.results.outcome import NO_VERDICT, Outcome
from conformance.results.run import KernelFacts, same_kernel
from conformance.results.stored_outcomes import RunOutcomes
from conformance.results.stored_runs import release_key

SCHEMA = 1
"""Version of the --json document."""

# In the id or release of a changed kernel.
_CHANGED = re.compile(r"[+~]|dirty")
NOT_JUDGED = "not judged"


class Stretch(Struct, frozen=True):
    """Consecutive runs of one kernel with the same outcome of a case."""

    outcome: Outcome
    runs: tuple[RunOutcomes, ...]
    reason: str = ""


class KernelHistory(Struct, frozen=True):
    """The outcomes of one case on one kernel, as stretches by date.

    ``tally`` counts the newest build under the newest suite, to show whether the case is flaky.
    """

    kernel: KernelFacts
    stretches: tuple[Stretch, ...]
    tally: Tally

    @property
    def plain(self) -> bool:
        """Whether the kernel is unchanged and judged by the ABI of its release."""
        changed = _CHANGED.search(f"{self.kernel.id} {self.kernel.release}")
        return self.kernel.variant is None and not changed and self.usual

    @property
    def usual(self) -> bool:
        """Whether the kernel is judged by the ABI of its release; an image may add a suffix."""
        release, profile = self.kernel.release, self.kernel.profile
        own = re.match(re.escape(profile) + r"(?!\d|\.\d)", release)
        return not release or profile == self.kernel.id or own is not None

    @property
    def state(self) -> str:
        """The newest outcome with a verdict, "flaky", or that there is none."""
        if self.tally.disagree:
            return "flaky"
        judged = [each.outcome for each in self.stretches if each.outcome not in NO_VERDICT]
        return judged[-1].value if judged else NOT_JUDGED

    @property
    def suite(self) -> str:
        """The revision of the suite in the last run."""
        return self.stretches[-1].runs[-1].head.suite


class CaseHistory(Struct, frozen=True):
    """The history of one case: kernels by release."""

    case: str
    kernels: tuple[KernelHistory, ...]

    @property
    def comparable(self) -> list[KernelHistory]:
        """The unchanged kernels with a verdict, which form ranges."""
        return [each for each in self.kernels if each.plain and each.state != NOT_JUDGED]

    @property
    def suite_differs(self) -> list[tuple[KernelHistory, KernelHistory]]:
        """Neighbours with different outcomes and different suites: the suite may be the cause."""
        return [
            (one, other)
            for one, other in pairwise(self.comparable)
            if one.state != other.state and one.suite != other.suite
        ]

    @property
    def sentence(self) -> str:
        """The ranges of releases with their outcomes."""
        ranges = [
            (state, [self.named(each) for each in group])
            for state, group in groupby(self.comparable, lambda each: each.state)
        ]
        if not ranges:
            return "not judged on any unchanged kernel"
        if len(ranges) == 1:
            state, group = ranges[0]
            return f"{state} {_between(group)}"
        (first, oldest), *middle, (last, newest) = ranges
        parts = [f"{first} up to {oldest[-1]}"]
        parts += [f"{state} {_between(group)}" for state, group in middle]
        return ", ".join([*parts, f"{last} from {newest[0]}"])

    def named(self, past: KernelHistory) -> str:
        """The release of a kernel, with its id if another kernel has the same release."""
        kernel = past.kernel
        alike = [each for each in self.comparable if each.kernel.release == kernel.release]
        if not kernel.release:
            return kernel.id
        return f"{kernel.release} ({kernel.id})" if len(alike) > 1 else kernel.release

    def to_json(self) -> dict[str, object]:
        """The document of --json."""
        return {
            "schema": SCHEMA,
            "case": self.case,
            "sentence": self.sentence,
            "kernels": [_kernel_json(each) for each in self.kernels],
        }


class OutcomeChange(Struct, frozen=True):
    """A case whose outcome differs from its last run on this kernel.

    ``flaky``: build, suite and program are the same.
    """

    case: str
    was: Outcome
    now: Outcome
    flaky: bool


class RunChanges(Struct, frozen=True):
    """One run of a kernel, and the outcomes that changed in it.

    ``new_cases`` counts cases that never ran on this kernel before.  ``same_kernel`` and
    ``same_suite`` compare with the previous run; both are True for the first.
    """

    run: RunOutcomes
    changes: tuple[OutcomeChange, ...]
    new_cases: int
    same_kernel: bool = True
    same_suite: bool = True

    @property
    def counts(self) -> dict[Outcome, int]:
        """The number of cases by outcome."""
        counted = Counter(each.outcome for each in self.run.cases.values())
        return {each: counted[each] for each in Outcome if counted[each] or each is Outcome.PASS}

    def to_json(self) -> dict[str, object]:
        """One run of the document of --json."""
        run, head = self.run, self.run.head
        return {
            "path": str(run.path),
            "release": head.kernel.release,
            "profile": head.kernel.profile,
            "build": head.kernel.build,
            "started": head.started,
            "suite": head.suite,
            "accel": head.host["accel"],
            "verdict": run.verdict,
            "counts": {outcome.value: number for outcome, number in self.counts.items()},
            "same_kernel": self.same_kernel,
            "same_suite": self.same_suite,
            "fresh": self.new_cases,
            "changed": to_builtins(self.changes),
        }


def case_history(case: str, runs: Sequence[RunOutcomes]) -> CaseHistory:
    """The history of a case in these runs, sorted by date."""
    by_kernel: dict[tuple[str, str, str], list[RunOutcomes]] = {}
    for run in runs:
        if case in run.cases:
            kernel = run.head.kernel
            by_kernel.setdefault((kernel.release, kernel.id, kernel.profile), []).append(run)
    ordered = sorted(by_kernel, key=lambda key: (release_key(key[0]), key))
    return CaseHistory(case, tuple(_kernel_history(case, by_kernel[key]) for key in ordered))


def kernel_history(runs: Iterable[RunOutcomes]) -> list[RunChanges]:
    """The runs of a kernel by release, then by date."""
    past: list[RunChanges] = []
    # The last run of each case.
    last: dict[str, RunOutcomes] = {}
    for run in sorted(runs, key=_age):
        before = past[-1].run if past else run
        past.append(
            RunChanges(
                run,
                tuple(sorted(_changes(run, last), key=lambda each: each.case)),
                new_cases=len(run.cases.keys() - last.keys()),
                same_kernel=same_kernel(before.head.kernel, run.head.kernel),
                same_suite=before.head.suite == run.head.suite,
            )
        )
        last.update(dict.fromkeys(run.cases, run))
    return past


def _age(run: RunOutcomes) -> tuple[tuple[int, ...], str]:
    return release_key(run.head.kernel.release), run.head.started


def _changes(run: RunOutcomes, last: Mapping[str, RunOutcomes]) -> Iterator[OutcomeChange]:
    for case, now in run.cases.items():
        before = last.get(case)
        if before is None or (was := before.cases[case]).outcome is now.outcome:
            continue
        same = _same_build_and_suite(before, run)
        flaky = same and not was.program.changed(now.program)
        yield OutcomeChange(case, was.outcome, now.outcome, flaky)


def _same_build_and_suite(one: RunOutcomes, other: RunOutcomes) -> bool:
    same_suite = one.head.suite == other.head.suite
    return same_suite and same_kernel(one.head.kernel, other.head.kernel)


def _kernel_history(case: str, runs: Sequence[RunOutcomes]) -> KernelHistory:
    stretches = []
    for outcome, group in groupby(runs, lambda run: run.cases[case].outcome):
        members = tuple(group)
        stretches.append(Stretch(outcome, members, members[-1].cases[case].reason))
    newest = runs[-1]
    alike = [run.cases[case] for run in reversed(runs) if _same_build_and_suite(run, newest)]
    # An unidentified build is not even the same as itself.
    tally = Tally.of([newest.cases[case], *alike[1:]])
    return KernelHistory(newest.head.kernel, tuple(stretches), tally)


def _between(names: Sequence[str]) -> str:
    first, last = names[0], names[-1]
    return f"in {first}" if first == last else f"from {first} to {last}"


def _kernel_json(past: KernelHistory) -> dict[str, object]:
    return {
        "kernel": past.kernel.id,
        "release": past.kernel.release,
        "profile": past.kernel.profile,
        "unchanged": past.plain,
        "state": past.state,
        "flaky": past.tally.to_json() if past.tally.disagree else None,
        "stretches": [
            {
                "outcome": each.outcome.value,
                "runs": len(each.runs),
                "from": each.runs[0].head.started,
                "to": each.runs[-1].head.started,
                "first": str(each.runs[0].path),
                "last": str(each.runs[-1].path),
                "reason": each.reason,
            }
            for each in past.stretches
        ],
    }
