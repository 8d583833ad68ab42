"""Hand out builds and shards to workers, longest first, until every case has one result.

A shard is tried again when its worker dies, hangs or is cut off.  One that ends its workers again
and again is halved, down to one case, which is an ERROR of the host.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.cli.matrix.cluster import RESOURCE
from conformance.cli.matrix.progress import DONE, Column
from conformance.cli.matrix.shard_store import ShardStore
from conformance.cli.matrix.tasks import Judged, TaskHung, build, ids_of, judge
from conformance.results.case_result import Blame, CaseResult, Outcome
from conformance.results.errors import ReportError
from conformance.results.shard import SEPARATOR
from conformance.session.merge import write_merged
from conformance.session.shards import seconds_of, shard
from host.deadline import Deadline

if TYPE_CHECKING:
    from distributed import Client, Future

#: Seconds of cases that a shard has by default; to start a guest and collect cases takes a few.
CASES_IN_SHARD_S = 60.0
# A shard that takes so many times its estimate, and so many seconds, hangs.
_SLOW = 20.0
_LEAST_S = 900.0
# Attempts at a task that fails without ending its worker.
_ATTEMPTS = 3
# The report of all kernels is written when so many times its last duration have passed.
_OVERVIEW = 20.0
# Seconds between looks at the number of workers.
_TICK_S = 1.0
# Seconds without any worker after which the matrix is given up.
_ALONE_S = 120.0


class Task(NamedTuple):
    """A shard to be judged, ordered so that the longest is first."""

    minus_seconds: float
    kernel: str
    part: str


@dataclass(slots=True)
class _Kernel:
    column: Column
    store: ShardStore
    built: Future | None = None
    ids: tuple[str, ...] = ()
    left: set[str] = field(default_factory=set)
    blamed: dict[str, CaseResult] = field(default_factory=dict)
    merged: bool = False


class Matrix:
    """The kernels of a matrix, in a directory; ``words`` are options of `uevt run`.

    ``shards`` is the number of shards of a kernel, None for one that suits.
    """

    def __init__(
        self,
        client: Client,
        directory: Path,
        kernels: Sequence[str],
        words: Sequence[str],
        shards: int | None = None,
        *,
        building: Callable[..., Any] = build,
        judging: Callable[..., Any] = judge,
    ) -> None:
        self._client = client
        self._directory = directory
        self._words = tuple(words)
        self._shards = shards
        self._building, self._judging = building, judging
        self._kernels = {
            name: _Kernel(Column(name), ShardStore(directory, name)) for name in kernels
        }
        self._builds = list(reversed(kernels))
        self._queue: list[Task] = []
        self._running: dict[Future, tuple[str, str]] = {}
        # Not before this time on the monotonic clock.
        self._overview_at = 0.0
        self._attempts: Counter[tuple[str, str]] = Counter()
        #: Errors of kernels that could not be judged.
        self.errors: dict[str, str] = {}

    @property
    def columns(self) -> list[Column]:
        """The state of each kernel."""
        return [each.column for each in self._kernels.values()]

    @property
    def judged(self) -> list[str]:
        """The kernels that are complete."""
        return [name for name, each in self._kernels.items() if each.merged]

    def run(self, on_change: Callable[[int], None]) -> None:
        """Judge all kernels; ``on_change`` gets the number of workers.

        Raises ReportError, OSError, TimeoutError without workers.
        """
        from distributed import wait

        self._client.wait_for_workers(1, timeout=_ALONE_S)
        alone = Deadline(_ALONE_S, "a worker")
        while self._builds or self._queue or self._running:
            slots = self._slots()
            if slots:
                alone = Deadline(_ALONE_S, "a worker")
            elif alone.expired:
                raise TimeoutError(f"none for {_ALONE_S:.0f} s")
            self._submit(slots)
            on_change(slots)
            if not self._running:
                self._client.wait_for_workers(1, timeout=_ALONE_S)
                continue
            with suppress(TimeoutError):
                wait(list(self._running), timeout=_TICK_S, return_when="FIRST_COMPLETED")
            for future in [each for each in self._running if each.done()]:
                self._ended(future, *self._running.pop(future))
                on_change(slots)
        if self.judged:
            write_overview(self._directory)

    def _slots(self) -> int:
        """How many shards the workers can judge at once."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return int(sum(each.get("resources", {}).get(RESOURCE, 0) for each in workers))

    def _submit(self, slots: int) -> None:
        """Start tasks for all slots: builds first, since shards wait for them."""
        while len(self._running) < slots and (self._builds or self._queue):
            # A build uses all processors of its worker's machine: one at a time, while shards run.
            building = sum(not part for _, part in self._running.values())
            if self._builds and (not building or not self._queue):
                self._build(self._builds.pop())
            elif self._queue:
                self._judge(heapq.heappop(self._queue))

    def _build(self, name: str) -> None:
        kernel = self._kernels[name]
        kernel.column.state = "building"
        kernel.built = self._client.submit(
            self._building, name, self._words, key=self._key("build", name), **_once()
        )
        ids = self._client.submit(ids_of, kernel.built, key=self._key("cases", name), pure=False)
        self._running[ids] = (name, "")

    def _judge(self, task: Task) -> None:
        kernel = self._kernels[task.kernel]
        limit = max(_LEAST_S, -task.minus_seconds * _SLOW)
        future = self._client.submit(
            self._judging,
            *(kernel.built, task.kernel, self._words, task.part, limit),
            key=self._key("judge", task.kernel, task.part),
            **_once(),
        )
        self._running[future] = (task.kernel, task.part)

    def _key(self, *words: str) -> str:
        """A new key for every attempt: dask would return the old error for the same."""
        number = self._attempts[words[1], "".join(words[2:])]
        return "-".join([*words, str(number), str(id(self))])

    def _ended(self, future: Future, name: str, part: str) -> None:
        kernel = self._kernels[name]
        if name in self.errors:
            return
        if future.status == "finished":
            result = future.result()
            if part:
                self._judged(kernel, part, result)
            else:
                self._plan(kernel, result)
            return
        error = future.exception() if future.status == "error" else None
        deadly = isinstance(error, TaskHung) or type(error).__name__ == "KilledWorker"
        self._attempts[name, part] += 1
        if deadly and part:
            self._halve(kernel, part, error)
        elif self._attempts[name, part] >= _ATTEMPTS:
            self._fail(kernel, f"{part or 'build'}: {error or future.status}")
            kernel.column.left_s = 0.0
            self._queue = [task for task in self._queue if task.kernel != name]
            heapq.heapify(self._queue)
        elif part:
            self._enqueue(kernel, part)
        else:
            self._builds.append(name)

    def _fail(self, kernel: _Kernel, why: str) -> None:
        self.errors[kernel.column.kernel], kernel.column.state = why, "failed"

    def _plan(self, kernel: _Kernel, ids: tuple[str, ...]) -> None:
        """A kernel is built: split its cases, and take what an earlier controller judged."""
        kernel.ids, kernel.column.cases = ids, len(ids)
        kernel.column.state = "judging"
        if not ids:
            self._fail(kernel, "no case is selected")
            return
        number = self._shards or math.ceil(seconds_of(ids) / CASES_IN_SHARD_S)
        number = min(number, len(ids))
        found = kernel.store.runs()
        pending = [f"{each}/{number}" for each in range(1, number + 1)]
        while pending:
            part = pending.pop()
            if part in found:
                kernel.column.add(part, found[part])
            elif any(each.startswith(part + SEPARATOR) for each in found):
                pending += _halves(part)
            else:
                self._enqueue(kernel, part)
        self._merge_if_complete(kernel)

    def _enqueue(self, kernel: _Kernel, part: str) -> None:
        seconds = seconds_of(shard(part, kernel.ids).cases)
        if part not in kernel.left:
            kernel.left.add(part)
            kernel.column.left_s += seconds
        heapq.heappush(self._queue, Task(-seconds, kernel.column.kernel, part))

    def _judged(self, kernel: _Kernel, part: str, result: Judged) -> None:
        kernel.column.add(part, kernel.store.add(part, result.files, result.worker))
        self._done(kernel, part)

    def _done(self, kernel: _Kernel, part: str) -> None:
        kernel.left.discard(part)
        kernel.column.left_s -= seconds_of(shard(part, kernel.ids).cases)
        self._merge_if_complete(kernel)

    def _halve(self, kernel: _Kernel, part: str, error: BaseException | None) -> None:
        """Judge the halves of a shard that ends its workers; one case is to blame itself."""
        cases = shard(part, kernel.ids).cases
        if len(cases) > 1:
            for half in _halves(part):
                self._enqueue(kernel, half)
        else:
            (id,) = cases
            kernel.blamed[id] = _blamed(id, error)
            kernel.column.done += 1
            kernel.column.unexpected += 1
        self._done(kernel, part)

    def _merge_if_complete(self, kernel: _Kernel) -> None:
        if kernel.left or kernel.merged:
            return
        name, runs = kernel.column.kernel, list(kernel.column.runs.values())
        if not runs:
            self._fail(kernel, "every case ended its workers")
            return
        try:
            write_merged(runs, self._directory / name, kernel.blamed, force=True)
        except ReportError as error:
            # A worker with another suite, or another accelerator.
            self._fail(kernel, str(error))
            return
        kernel.store.remove()
        # Thousands of results, and the kernel on its builder.
        kernel.column.runs.clear()
        kernel.built = None
        kernel.merged, kernel.column.state = True, DONE
        began = time.monotonic()
        if began >= self._overview_at:
            write_overview(self._directory)
            self._overview_at = began + _OVERVIEW * (time.monotonic() - began)


def write_overview(directory: Path) -> None:
    """Write report.html of the kernels so far.  Raises OSError, ReportError."""
    from conformance.report.matrix.findings import read_findings
    from conformance.report.matrix.html import render_html
    from conformance.report.matrix.table import matrix
    from conformance.results.directory import REPORT
    from conformance.results.stored_runs import latest_runs, read_run
    from host.files import write_atomically

    found = [read_run(file) for file in latest_runs(directory)]
    # A self-check is no column.
    runs = [run for run in found if not run.record.head.self_check]
    if not runs:
        return
    write_atomically(directory / REPORT, render_html(matrix(runs), read_findings()))


def _halves(part: str) -> tuple[str, str]:
    return f"{part}{SEPARATOR}1/2", f"{part}{SEPARATOR}2/2"


def _blamed(id: str, error: BaseException | None) -> CaseResult:
    how = str(error) if isinstance(error, TaskHung) else "the workers that ran it died"
    reason = f"{how}; run it alone: uevt run -k {id}"
    surface = id.partition(".")[0]
    return CaseResult(id, surface, "", Outcome.ERROR, Blame.HOST, reason)


def _once() -> dict[str, Any]:
    """Options of a task that takes a slot of a worker."""
    return {"resources": {RESOURCE: 1}, "retries": 0, "pure": False}
