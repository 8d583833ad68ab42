"""When an outcome changed: the runs of a store in the order of what they judged.

Kernels are ordered by release, runs of one kernel by date.  Only kernels as they were released
make a range of releases: what a patch, a variant of ours, a module or a flavour shows says nothing
of the release it is made from.
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
"""Version of the JSON written here."""

# What is in the name or the release of a kernel that somebody has changed.
_CHANGED = re.compile(r"[+~]|dirty")
NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Runs of one kernel, one after the other, in which a case came to the same."""

    outcome: Outcome
    runs: tuple[StoredRun, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class KernelHistory:
    """What one case came to on one kernel: stretches by date.

    ``tally`` counts the newest build as the newest suite judged it, so that it tells whether the
    case is flaky.
    """

    kernel: KernelFacts
    stretches: tuple[Stretch, ...]
    tally: Tally

    @property
    def runs(self) -> int:
        """How many runs had the case."""
        return sum(len(each.runs) for each in self.stretches)

    @property
    def plain(self) -> bool:
        """Whether it is a kernel as it was released, judged by what its release promises."""
        names = f"{self.kernel.id} {self.kernel.release}"
        changed = _CHANGED.search(names) or "," in self.kernel.profile
        return self.kernel.variant is None and not changed

    @property
    def state(self) -> str:
        """What stands: the newest outcome that says something, or that there is none."""
        if self.tally.disagree:
            return "flaky"
        judged = [each.outcome for each in self.stretches if each.outcome not in NO_VERDICT]
        return judged[-1].value if judged else NOT_JUDGED

    @property
    def suite(self) -> str:
        """The revision of the suite that judged it last."""
        return self.stretches[-1].runs[-1].suite


@dataclass(frozen=True, slots=True)
class CaseHistory:
    """The history of one case: kernels by release."""

    case: str
    kernels: tuple[KernelHistory, ...]

    @property
    def comparable(self) -> list[KernelHistory]:
        """The kernels that make a range of releases."""
        return [each for each in self.kernels if each.plain and each.state != NOT_JUDGED]

    @property
    def suite_differs(self) -> list[tuple[KernelHistory, KernelHistory]]:
        """Neighbours of which one or the other may be the suite's doing, not the kernel's."""
        return [
            (one, other)
            for one, other in pairwise(self.comparable)
            if one.state != other.state and one.suite != other.suite
        ]

    @property
    def sentence(self) -> str:
        """Between which releases its outcome changed."""
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
        """A kernel by its release; by its id as well where another has the same."""
        kernel = past.kernel
        alike = [each for each in self.comparable if each.kernel.release == kernel.release]
        if not kernel.release:
            return kernel.id
        return f"{kernel.release} ({kernel.id})" if len(alike) > 1 else kernel.release

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "schema": SCHEMA,
            "case": self.case,
            "sentence": self.sentence,
            "kernels": [_kernel_json(each) for each in self.kernels],
        }


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """A case that came to something else than when it last ran on this kernel.

    ``flaky`` says that nothing but flaky can be why: build, suite and program are the same.
    """

    case: str
    was: Outcome
    now: Outcome
    flaky: bool


@dataclass(frozen=True, slots=True)
class RunChanges:
    """One run of a kernel, and what it shows differently from those before it.

    ``fresh`` counts the cases that never ran on this kernel before.  ``same_kernel`` and
    ``same_suite`` compare it with the run before; both are True for the first.
    """

    run: StoredRun
    counts: Mapping[Outcome, int]
    changes: tuple[OutcomeChange, ...]
    new_cases: int
    same_kernel: bool = True
    same_suite: bool = True

    def to_json(self) -> dict[str, object]:
        """For programs."""
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
    """The history of a case in these runs of a store, which are in the order of their dates."""
    shown = store.outcomes_of(case)
    by_kernel: dict[tuple[str, str, str], list[tuple[StoredRun, CaseOutcome]]] = {}
    for run in runs:
        if run.number in shown:
            key = (run.kernel.release, run.kernel.id, run.kernel.profile)
            by_kernel.setdefault(key, []).append((run, shown[run.number]))
    ordered = sorted(by_kernel, key=lambda key: (release_key(key[0]), key))
    return CaseHistory(case, tuple(_kernel_history(by_kernel[key]) for key in ordered))


def kernel_history(store: Store, runs: Iterable[StoredRun]) -> list[RunChanges]:
    """The history of a kernel: its runs by release, and by date where that is the same."""
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
    """Goes through runs and remembers what each case came to when it last ran."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # By the number of a case: the last run that had it.
        self._last: dict[int, tuple[StoredRun, Contents]] = {}
        # The cases that did not pass there.
        self._unusual: set[int] = set()

    def new_cases(self, contents: Contents) -> int:
        """How many cases have not run before."""
        return len(contents.all - self._last.keys())

    def changes(self, run: StoredRun, contents: Contents) -> tuple[OutcomeChange, ...]:
        """The cases that come to something else now; from now on they are known as they are."""
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
