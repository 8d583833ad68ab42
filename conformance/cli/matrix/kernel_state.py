"""One kernel of a matrix: its shards, from the build to the merged report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from conformance.cli.matrix import resources
from conformance.cli.matrix.kernel_spec import KernelSpec
from conformance.cli.matrix.progress import DONE, Column
from conformance.cli.matrix.resources import Resources
from conformance.cli.matrix.shard_store import ShardStore
from conformance.cli.matrix.tasks import Judged, TaskFailed, TaskHung
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Blame, Outcome
from conformance.results.run import RunHead
from conformance.results.shard import SEPARATOR
from conformance.results.stored_runs import Run
from conformance.session.launch import guest_mib
from conformance.session.merge import write_merged
from conformance.session.shards import seconds_of, shard
from host.deadline import Deadline

if TYPE_CHECKING:
    from distributed import Future

#: Seconds of cases that a shard has by default; to start a guest and collect cases takes a few.
CASES_IN_SHARD_S = 60.0
# Seconds without a worker for a kernel after which it is given up.
_ALONE_S = 120.0
# Workers that a kernel is fetched from besides its builder.
_HOLDERS = 4


def _patience() -> Deadline:
    return Deadline(_ALONE_S, "a worker")


class KernelState(Struct):
    """A kernel: its build, and the shards that are judged, left, suspected and blamed.

    ``takes`` are the resources of its tasks, until ``given_up``; ``holders`` are workers that have
    its build.  A suspected shard is one case that may have ended its workers.
    """

    spec: KernelSpec
    column: Column
    store: ShardStore
    takes: Resources
    given_up: Deadline = field(default_factory=_patience)
    built: Future | None = None
    holders: list[str] = field(default_factory=list)
    ids: tuple[str, ...] = ()
    left: set[str] = field(default_factory=set)
    suspected: set[str] = field(default_factory=set)
    blamed: dict[str, CaseResult] = field(default_factory=dict)
    merged: bool = False

    @classmethod
    def waiting(cls, directory: Path, spec: KernelSpec) -> KernelState:
        """A kernel to be built, of the matrix in a directory."""
        takes = resources.of_build(here=spec.has_tree)
        return cls(spec, Column(spec.id), ShardStore(directory, spec.id), takes)

    @property
    def name(self) -> str:
        """The id of the kernel."""
        return self.spec.id

    def could_run(self, workers: list[Resources]) -> bool:
        """Whether a worker offers what its tasks take, now or lately."""
        if any(resources.room(self.takes, each) for each in workers):
            self.given_up = _patience()
        return not self.given_up.expired

    def plan(
        self, ids: tuple[str, ...], shards: int | None, suite: RunHead, accelerator: str | None
    ) -> Iterator[str]:
        """Take what an earlier controller judged; the shards that are left.

        ``accelerator`` is that of most workers.  Raises ReportError.
        """
        self.ids, self.column.cases = ids, len(ids)
        self.column.state = "judging"
        found = {
            part: run
            for part, run in self.store.runs().items()
            if not _other_suite(run.record.head, suite)
        }
        # All shards of a kernel run with one accelerator.
        was = [run.record.head.host["accel"] for run in found.values()]
        accelerator = was[0] if was else accelerator
        accelerated = None if self.spec.entry is None else accelerator
        self.takes = resources.of_shard(guest_mib(self.spec.flavour), accelerated)
        number = min(shards or math.ceil(seconds_of(ids) / CASES_IN_SHARD_S), len(ids))
        pending = [f"{each}/{number}" for each in range(1, number + 1)]
        while pending:
            part = pending.pop()
            if part in found:
                self.column.add(part, found[part])
            elif any(each.startswith(part + SEPARATOR) for each in found):
                pending += halves(part)
            else:
                yield part

    def cases(self, part: str) -> tuple[str, ...]:
        """The ids of the cases of a shard."""
        return shard(part, self.ids).cases

    def wait_for(self, part: str) -> float:
        """Count a shard as left; the seconds that it takes."""
        seconds = seconds_of(self.cases(part))
        if part not in self.left:
            self.left.add(part)
            self.column.left_s += seconds
        return seconds

    def take(self, part: str, result: Judged, suite: RunHead) -> None:
        """Take the results of a shard.  Raises TaskFailed for those of another suite."""
        if result.worker not in self.holders:
            self.holders = [result.worker, *self.holders][:_HOLDERS]
        run = self.store.add(part, result.files, result.name, self.spec.words)
        if other := _other_suite(run.record.head, suite):
            what = f"worker {result.name} has suite {other}, and not {_suite_of(suite)}"
            raise TaskFailed(what, result.worker)
        self.judged(part, run)

    def judged(self, part: str, run: Run | None = None) -> None:
        """A shard is not left any more; without ``run`` it was divided, or its case is to blame."""
        if run is not None:
            self.column.add(part, run)
        self.left.discard(part)
        self.column.left_s -= seconds_of(self.cases(part))

    def blame(self, id: str, error: BaseException | None) -> None:
        """A case ends its workers, also alone."""
        how = str(error) if isinstance(error, TaskHung) else "the workers that ran it died"
        reason = f"{how}; run it alone: uevt run -k {id}"
        surface = id.partition(".")[0]
        self.blamed[id] = CaseResult(id, surface, "", Outcome.ERROR, Blame.HOST, reason)
        self.column.done += 1
        self.column.unexpected += 1

    def merge(self, directory: Path) -> None:
        """Write the report of all shards into a directory.

        Raises ReportError for shards of several accelerators, OSError.
        """
        write_merged(list(self.column.runs.values()), directory, self.blamed, force=True)
        self.store.remove()
        # Thousands of results, and the kernel on its builder.
        self.column.runs.clear()
        self.built = None
        self.merged, self.column.state = True, DONE


def halves(part: str) -> tuple[str, str]:
    """The halves of a shard."""
    return f"{part}{SEPARATOR}1/2", f"{part}{SEPARATOR}2/2"


def _other_suite(head: RunHead, own: RunHead) -> str:
    """The suite of a run, if it is not ``own``, else ""."""
    suite = _suite_of(head)
    return suite if suite != _suite_of(own) else ""


def _suite_of(head: RunHead) -> str:
    """Revision and digest: a checkout may have been edited."""
    return f"{head.suite} ({(head.suite_sha256 or 'unknown')[:12]})"
