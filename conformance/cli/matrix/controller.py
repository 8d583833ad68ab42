"""Hand out builds and shards to workers, longest first, until every case has one result.

A shard is tried again when its worker dies, hangs or is cut off.  One that ends its workers again
and again is halved, down to one case, which is an ERROR of the host if it ends them alone as well.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.cli.matrix import resources
from conformance.cli.matrix.kernel_spec import KernelSpec
from conformance.cli.matrix.kernel_state import KernelState, halves
from conformance.cli.matrix.progress import Column, write_overview
from conformance.cli.matrix.resources import Resources
from conformance.cli.matrix.tasks import TOPIC, Built, TaskFailed, TaskHung, build, judge
from conformance.results.errors import ReportError
from conformance.results.outcome import Level
from conformance.session.controller.run_head import run_head
from conformance.session.launch import guest_mib
from conformance.session.target.target import MODEL, MODEL_ABI, Target
from kernels.errors import HostTrouble

if TYPE_CHECKING:
    from distributed import Client, Future

# A shard that takes so many times its estimate, and so many seconds, hangs.
_SLOW = 20.0
_LEAST_S = 900.0
# Attempts at a task that fails without ending its worker.
_ATTEMPTS = 3
# The report of all kernels is written when so many times its last duration have passed.
_OVERVIEW = 20.0
# Seconds between looks at the number of workers.
_TICK_S = 1.0
# How long a scheduler may be busy, or stopped.
_ANSWER_S = 120


class Task(NamedTuple):
    """A shard to be judged, ordered so that the longest is first."""

    minus_seconds: float
    kernel: str
    part: str


class Matrix:
    """The kernels of a matrix, in a directory.

    ``shards`` is the number of shards of a kernel, None for one that suits.
    """

    def __init__(
        self,
        client: Client,
        directory: Path,
        specs: Sequence[KernelSpec],
        shards: int | None = None,
        *,
        building: Callable[..., Any] = build,
        judging: Callable[..., Any] = judge,
    ) -> None:
        self._client = client
        self._directory = directory
        self._shards = shards
        self._building, self._judging = building, judging
        self._kernels = {spec.id: KernelState.waiting(directory, spec) for spec in specs}
        # What a shard takes of any worker.
        self._shard = resources.of_shard(max(guest_mib(spec.flavour) for spec in specs), None)
        # Its suite is that of this checkout, which every shard must have.
        self._head = run_head(Target(MODEL, MODEL_ABI, accelerator=None), (), Level.CONTRACT)
        self._builds = list(reversed(self._kernels))
        self._queue: list[Task] = []
        # Shards of one case, to judge alone.
        self._suspects: list[Task] = []
        self._running: dict[Future, tuple[str, str]] = {}
        # Not before this time on the monotonic clock.
        self._overview_at = 0.0
        self._attempts: Counter[tuple[str, str]] = Counter()
        # The addresses of the workers that a task failed at.
        self._failed: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
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

        Raises HostTrouble if the scheduler ends, ReportError, OSError.
        """
        self._client.subscribe_topic(TOPIC, self._progress)
        while self._builds or self._queue or self._running or self._suspects:
            workers = list(self._workers().values())
            slots = sum(resources.room(self._shard, each) for each in workers)
            self._give_up(workers)
            # A build may run where no shard can.
            self._submit(max(1, slots))
            on_change(slots)
            if not self._running:
                time.sleep(_TICK_S)
                continue
            self._wait()
            for future in [each for each in self._running if each.done()]:
                # Unless the kernel failed by another.
                if future in self._running:
                    self._ended(future, *self._running.pop(future))
                on_change(slots)
        if self.judged:
            write_overview(self._directory)

    def _wait(self) -> None:
        """Wait for the end of a task, not for long.  Raises HostTrouble."""
        from distributed import wait

        try:
            wait(list(self._running), timeout=_TICK_S, return_when="FIRST_COMPLETED")
        except TimeoutError:
            pass
        except CancelledError:
            # Of the tasks that run none is cancelled otherwise; kernels that were built are lost.
            raise self._scheduler_ended() from None

    def _scheduler_ended(self) -> HostTrouble:
        return HostTrouble("the scheduler has ended", self._resumption)

    @property
    def _resumption(self) -> str:
        return f"to go on: uevt matrix --resume {self._directory}"

    def _progress(self, event: tuple[float, dict[str, Any]]) -> None:
        """A message about a shard, in another thread."""
        message = event[1]
        kernel = self._kernels.get(message["kernel"])
        if kernel is not None and message["part"] in kernel.left:
            kernel.column.running[message["part"]] = message["done"]

    def _workers(self) -> dict[str, Resources]:
        """What each worker offers, by its address.  Raises HostTrouble."""
        if self._client.status != "running":
            raise self._scheduler_ended()
        asked = partial(self._client.scheduler.identity, n_workers=-1)
        try:
            workers = self._client.sync(asked, callback_timeout=_ANSWER_S)["workers"]
        except TimeoutError:
            what = f"the scheduler has not answered for {_ANSWER_S} s"
            raise HostTrouble(what, self._resumption) from None
        except OSError:
            raise self._scheduler_ended() from None
        return {address: each.get("resources", {}) for address, each in workers.items()}

    def _give_up(self, workers: list[Resources]) -> None:
        """Fail kernels that no worker could run for long enough."""
        for kernel in self._kernels.values():
            known = kernel.could_run(workers) or kernel.merged or kernel.name in self.errors
            if not known:
                needed = ", ".join(f"{name}={value:g}" for name, value in kernel.takes.items())
                self._fail(kernel, f"no worker offers {needed}; see uevt worker")

    def _submit(self, slots: int) -> None:
        """Start tasks for all slots: builds first, since shards wait for them; suspects last."""
        if self._suspects and not (self._builds or self._queue or self._running):
            self._judge(self._suspects.pop())
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
            self._building, kernel.spec, key=self._key("build", name), **self._once(kernel, "")
        )
        self._running[kernel.built] = (name, "")

    def _judge(self, task: Task) -> None:
        kernel = self._kernels[task.kernel]
        limit = max(_LEAST_S, -task.minus_seconds * _SLOW)
        future = self._client.submit(
            self._judging,
            *(kernel.built, kernel.spec, task.part, limit, tuple(kernel.holders)),
            key=self._key("judge", task.kernel, task.part),
            **self._once(kernel, task.part),
        )
        self._running[future] = (task.kernel, task.part)

    def _once(self, kernel: KernelState, part: str) -> dict[str, Any]:
        """Options of a task.

        It goes to a worker that it did not fail at: one without room for it is idle, and would get
        it again.
        """
        options = {"resources": dict(kernel.takes), "retries": 0, "pure": False}
        failed = self._failed[kernel.name, part]
        others = [
            address
            for address, offer in (self._workers() if failed else {}).items()
            if address not in failed and resources.room(kernel.takes, offer)
        ]
        return {**options, "workers": others, "allow_other_workers": True} if others else options

    def _key(self, *words: str) -> str:
        """A new key for every attempt: dask would return the old error for the same."""
        number = self._attempts[words[1], "".join(words[2:])]
        return "-".join([*words, str(number), str(id(self))])

    def _ended(self, future: Future, name: str, part: str) -> None:
        kernel = self._kernels[name]
        kernel.column.running.pop(part, None)
        error: BaseException | None = None
        if future.status == "finished":
            try:
                if part:
                    kernel.take(part, future.result(), self._head)
                    self._merge_if_complete(kernel)
                else:
                    self._plan(kernel, future.result())
                return
            except TaskFailed as failed:
                error = failed
        elif future.status == "error":
            error = future.exception()
        if isinstance(error, TaskFailed) and error.worker:
            self._failed[name, part].add(error.worker)
        deadly = isinstance(error, TaskHung) or type(error).__name__ == "KilledWorker"
        self._attempts[name, part] += 1
        if deadly and part:
            self._halve(kernel, part, error)
        elif self._attempts[name, part] >= _ATTEMPTS:
            self._fail(kernel, f"{part or 'build'}: {error or future.status}")
        elif part:
            self._enqueue(kernel, part)
        else:
            self._builds.append(name)

    def _fail(self, kernel: KernelState, why: str) -> None:
        name = kernel.name
        self.errors[name], kernel.column.state, kernel.column.left_s = why, "failed", 0.0
        self._builds = [each for each in self._builds if each != name]
        self._queue = [task for task in self._queue if task.kernel != name]
        heapq.heapify(self._queue)
        self._suspects = [task for task in self._suspects if task.kernel != name]
        for future in [each for each, (of, _) in self._running.items() if of == name]:
            del self._running[future]
            future.cancel()

    def _plan(self, kernel: KernelState, built: Built) -> None:
        """A kernel is built: split its cases, and take what an earlier controller judged."""
        if not built.ids:
            self._fail(kernel, "no case is selected")
            return
        accelerator = resources.most_offered(list(self._workers().values()))
        for part in kernel.plan(built.ids, self._shards, self._head, accelerator):
            self._enqueue(kernel, part)
        self._merge_if_complete(kernel)

    def _enqueue(self, kernel: KernelState, part: str) -> None:
        task = Task(-kernel.wait_for(part), kernel.name, part)
        if part in kernel.suspected:
            self._suspects.append(task)
        else:
            heapq.heappush(self._queue, task)

    def _halve(self, kernel: KernelState, part: str, error: BaseException | None) -> None:
        """Judge the halves of a shard that ends its workers.

        dask suspects every task of a worker that died: a single case is judged again while nothing
        else runs, and to blame if its workers die then.
        """
        cases = kernel.cases(part)
        if len(cases) > 1:
            for half in halves(part):
                self._enqueue(kernel, half)
        elif part not in kernel.suspected and not isinstance(error, TaskHung):
            kernel.suspected.add(part)
            self._enqueue(kernel, part)
            return
        else:
            kernel.blame(cases[0], error)
        kernel.judged(part)
        self._merge_if_complete(kernel)

    def _merge_if_complete(self, kernel: KernelState) -> None:
        if kernel.left or kernel.merged:
            return
        if not kernel.column.runs:
            self._fail(kernel, "every case ended its workers")
            return
        try:
            kernel.merge(self._directory / kernel.name)
        except ReportError as error:
            # A worker with another accelerator.
            self._fail(kernel, str(error))
            return
        began = time.monotonic()
        if began >= self._overview_at:
            write_overview(self._directory)
            self._overview_at = began + _OVERVIEW * (time.monotonic() - began)
