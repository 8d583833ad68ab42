"""When the outcome of a case changed, over the runs of a store.

Kernels are ordered by release, runs of one kernel by date.  Only unchanged kernels form ranges of
releases: a patch, variant, module or flavour says nothing about its release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from conformance.report.history.flaky import Tally
from conformance.report.history.store import Contents, Store, StoredRun, count
from conformance.results.case_result import NO_VERDICT, Outcome
from conformance.results.outcomes import CaseOutcome
from conformance.results.run import KernelFacts, same_kernel
from conformance.results.stored_runs import release_key

SCHEMA = 1
"""Version of the --json document."""

# In the id or release of a changed kernel.
_CHANGED = re.compile(r"[+~]|dirty")
NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive runs of one kernel with the same outcome of a case."""

    outcome: Outcome
    runs: tuple[StoredRun, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class KernelHistory:
    """The outcomes of one case on one kernel, as stretches by date.

    ``tally`` counts the newest build under the newest suite, to show whether the case is flaky.
    """

    kernel: KernelFacts
    stretches: tuple[Stretch, ...]
    tally: Tally

    @property
    def runs(self) -> int:
        """The number of runs of the case."""
        return sum(len(each.runs) for each in self.stretches)

    @property
    def plain(self) -> bool:
        """Whether the kernel is unchanged and judged by the ABI of its release."""
        names = f"{self.kernel.id} {self.kernel.release}"
        changed = _CHANGED.search(names) or "," in self.kernel.profile
        return self.kernel.variant is None and not changed

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
        return self.stretches[-1].runs[-1].suite


@dataclass(frozen=True, slots=True)
class CaseHistory:
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


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """A case whose outcome differs from its last run on this kernel.

    ``flaky``: build, suite and program are the same.
    """

    case: str
    was: Outcome
    now: Outcome
    flaky: bool


@dataclass(frozen=True, slots=True)
class RunChanges:
    """One run of a kernel, and the outcomes that changed in it.

    ``new_cases`` counts cases that never ran on this kernel before.  ``same_kernel`` and
    ``same_suite`` compare with the previous run; both are True for the first.
    """

    run: StoredRun
    counts: Mapping[Outcome, int]
    changes: tuple[OutcomeChange, ...]
    new_cases: int
    same_kernel: bool = True
    same_suite: bool = True

    def to_json(self) -> dict[str, object]:
        """One run of the document of --json."""
        run = self.run
        return {
            "path": run.path,
            "release": run.kernel.release,
            "profile": run.kernel.profile,
            "build": run.kernel.build,
            "started": run.started,
            "suite": run.suite,
            "accel": run.accel,
            "verdict": run.verdict.value,
            "counts": {outcome.value: number for outcome, number in self.counts.items()},
            "same_kernel": self.same_kernel,
            "same_suite": self.same_suite,
            "fresh": self.new_cases,
            "changed": [
                {
                    "case": each.case,
                    "was": str(each.was),
                    "now": str(each.now),
                    "flaky": each.flaky,
                }
                for each in self.changes
            ],
        }


def case_history(store: Store, case: str, runs: Sequence[StoredRun]) -> CaseHistory:
    """The history of a case in these runs of a store, sorted by date."""
    shown = store.outcomes_of(case)
    by_kernel: dict[tuple[str, str, str], list[tuple[StoredRun, CaseOutcome]]] = {}
    for run in runs:
        if run.number in shown:
            key = (run.kernel.release, run.kernel.id, run.kernel.profile)
            by_kernel.setdefault(key, []).append((run, shown[run.number]))
    ordered = sorted(by_kernel, key=lambda key: (release_key(key[0]), key))
    return CaseHistory(case, tuple(_kernel_history(by_kernel[key]) for key in ordered))


def kernel_history(store: Store, runs: Iterable[StoredRun]) -> list[RunChanges]:
    """The runs of a kernel by release, then by date."""
    past: list[RunChanges] = []
    walk = _Walk(store)
    for run in sorted(runs, key=lambda run: (release_key(run.kernel.release), run.started)):
        last = past[-1].run if past else run
        same = same_kernel(last.kernel, run.kernel), last.suite == run.suite
        contents = store.contents(run)
        new_cases = walk.new_cases(contents)
        past.append(RunChanges(run, count(contents), walk.changes(run, contents), new_cases, *same))
    return past


class _Walk:
    """Walk through runs, remembering the last run of each case."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Case number to the last run that had the case.
        self._last: dict[int, tuple[StoredRun, Contents]] = {}
        # Cases that did not pass in their last run.
        self._unusual: set[int] = set()

    def new_cases(self, contents: Contents) -> int:
        """The number of cases that have not run before."""
        return len(contents.all - self._last.keys())

    def changes(self, run: StoredRun, contents: Contents) -> tuple[OutcomeChange, ...]:
        """The cases whose outcome changed; then remember this run."""
        candidates = (contents.other.keys() | self._unusual) & contents.all & self._last.keys()
        found = [self._change(run, contents, case) for case in candidates]
        self._unusual = (self._unusual - contents.passed.keys()) | contents.other.keys()
        self._last.update(dict.fromkeys(contents.all, (run, contents)))
        return tuple(sorted((each for each in found if each), key=lambda each: each.case))

    def _change(self, run: StoredRun, contents: Contents, case: int) -> OutcomeChange | None:
        before, old = self._last[case]
        was, now = self._store.shown(old, case), self._store.shown(contents, case)
        if was.outcome is now.outcome:
            return None
        same = same_kernel(before.kernel, run.kernel) and before.suite == run.suite
        flaky = same and not was.program.changed(now.program)
        return OutcomeChange(self._store.name(case), was.outcome, now.outcome, flaky)


def _kernel_history(outcomes: Sequence[tuple[StoredRun, CaseOutcome]]) -> KernelHistory:
    stretches = []
    for outcome, group in groupby(outcomes, lambda each: each[1].outcome):
        members = list(group)
        runs = tuple(run for run, _ in members)
        stretches.append(Stretch(outcome, runs, members[-1][1].reason))
    newest, last = outcomes[-1]
    alike = [
        shown
        for run, shown in reversed(outcomes)
        if same_kernel(run.kernel, newest.kernel) and run.suite == newest.suite
    ]
    return KernelHistory(newest.kernel, tuple(stretches), Tally.of([last, *alike[1:]]))


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
        "flaky": {str(o): n for o, n in past.tally.outcomes.items()}
        if past.tally.disagree
        else None,
        "stretches": [
            {
                "outcome": each.outcome.value,
                "runs": len(each.runs),
                "from": each.runs[0].started,
                "to": each.runs[-1].started,
                "first": each.runs[0].path,
                "last": each.runs[-1].path,
                "reason": each.reason,
            }
            for each in past.stretches
        ],
    }
