"""Perform operations in a guest, through a channel of system calls.

The session implements the channel, which knows nothing of user_events.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from errno import errorcode
from itertools import groupby
from typing import Any, Protocol

from conformance.client.executor import Deadline
from conformance.ops import credentials, race, tasks, tracing
from conformance.ops import syscalls as op
from conformance.ops.decoding import file_views, perf_ring, trace_page
from conformance.ops.encode import credential_calls
from conformance.ops.encode.requests import STAT_MODE, Call, calls_of
from conformance.runner.process_pool import Enablers, PooledProcess, ProcessPool

_NOT_READ = "-"
_MAY_BE_UNSEEN = frozenset({"sys", "peek", "poke", "put_fd", "take_fd"})
# More digits than a number of 64 bits has.
_LONGEST_NUMBER = 40
_SPAWNING = (op.Spawn, tasks.SpawnDriver)


class Channel(Protocol):
    """Batches of generic calls by one actor of a guest."""

    def call(
        self,
        actor: str,
        calls: Sequence[Call],
        watch: Sequence[tuple[str, int, int]] = ...,
    ) -> list[dict[str, Any]]:
        """Perform calls; one result each: value, errno (a number), data and watch in hex."""
        ...

    def deadline(self, seconds: float, what: str) -> Deadline:
        """A deadline scaled to the speed of the guest."""
        ...

    def pause(self, deadline: Deadline) -> None:
        """Sleep a little, never past the deadline."""
        ...


class GuestExecutor:
    """Perform the operations of one program in processes of a pool."""

    def __init__(self, channel: Channel, pool: ProcessPool) -> None:
        self._channel = channel
        self._pool = pool
        self._processes: dict[str, PooledProcess] = {}

    def execute(
        self, operations: Sequence[op.Operation], watches: Sequence[op.Watch]
    ) -> list[op.Observation]:
        """Perform operations; consecutive ones of an actor travel together.

        Raises whatever the channel raises when the guest does not answer.
        """
        seen: list[op.Observation] = []
        for actor, batch in groupby(operations, key=lambda operation: operation.actor):
            for spawns, part in groupby(batch, key=lambda each: isinstance(each, _SPAWNING)):
                if spawns:
                    seen += [self._spawn(operation) for operation in part]
                else:
                    seen += self._batch(self._processes[actor], list(part), watches)
        return seen

    def _spawn(self, operation: op.Operation) -> op.Observation:
        fresh = isinstance(operation, tasks.SpawnDriver)
        self._processes[operation.actor] = self._pool.borrow(operation.actor, fresh=fresh)
        return op.Observation(0)

    def _batch(
        self, process: PooledProcess, batch: list[op.Operation], watches: Sequence[op.Watch]
    ) -> list[op.Observation]:
        for operation in (step for each in batch for step in race.steps_of(each)):
            if isinstance(operation, op.Fork):
                self._processes[operation.child] = self._pool.child()
            elif isinstance(operation, tasks.Clone):
                self._processes[operation.child] = self._pool.task(process)
        compiled = [process.driven(calls_of(self._renamed(operation))) for operation in batch]
        ranges = [(self._name(w.actor), w.address, w.length) for w in watches]
        flat = [call for calls in compiled for call in _seen_last(calls)]
        performer = process.driver or process
        results = iter(self._channel.call(performer.name, flat, ranges))
        seen = []
        for operation, calls in zip(batch, compiled, strict=True):
            mine = [next(results) for _ in calls]
            seen.append(_observation(operation, mine, watches))
            process.note(operation, ok=seen[-1].ok)
            for step in race.steps_of(operation):
                if isinstance(step, (op.Exit, tasks.ExitTask, tasks.Die)):
                    del self._processes[step.actor]
        return seen

    def _renamed(self, operation: op.Operation) -> op.Operation:
        """An operation that names a new process, with the name of that process in the guest."""
        if isinstance(operation, op.Fork):
            return op.Fork(operation.actor, self._name(operation.child))
        if isinstance(operation, tasks.Clone):
            child = self._name(operation.child)
            return tasks.Clone(self._name(operation.actor), child, operation.flags)
        if isinstance(operation, race.Race):
            tracks = [
                race.Track(
                    self._name(each.actor),
                    tuple(map(self._renamed, each.steps)),
                    each.passes,
                )
                for each in operation.tracks
            ]
            return race.Race(self._name(operation.actor), tuple(tracks))
        return operation

    def _name(self, actor: str) -> str:
        process = self._processes.get(actor)
        # No process has this name: memory of an actor that is gone is not readable.
        return "" if process is None else process.name

    def give_back(
        self, enablers: Mapping[str, Enablers], then: Sequence[Call] = ()
    ) -> list[dict[str, Any]]:
        """Give the processes of a program that passed back to the pool.

        ``enablers`` are those that each actor still has; see ProcessPool.give_back.
        """
        used = [(process, enablers.get(actor, ())) for actor, process in self._processes.items()]
        self._processes.clear()
        return self._pool.give_back(used, then)

    def deadline(self, seconds: float, what: str) -> Deadline:
        """A deadline scaled to the speed of the guest."""
        return self._channel.deadline(seconds, what)

    def pause(self, deadline: Deadline) -> None:
        """Sleep a little, never past the deadline."""
        self._channel.pause(deadline)


def _seen_last(calls: Sequence[Call]) -> list[Call]:
    """The calls of one operation, with memory watched after the last of them only."""
    *before, last = calls
    return [["unseen", call] if call[0] in _MAY_BE_UNSEEN else call for call in before] + [last]


def _observation(
    operation: op.Operation, results: list[dict[str, Any]], watches: Sequence[op.Watch]
) -> op.Observation:
    failed = [result for result in results if result["errno"]]
    result = failed[0] if failed else results[-1]
    number = result["errno"]
    watched = tuple(
        ((w.actor, w.address), None if text is None else bytes.fromhex(text))
        for w, text in zip(watches, results[-1]["watch"], strict=True)
        if text != _NOT_READ
    )
    if number:
        return op.Observation(-1, errorcode.get(number, f"errno {number}"), None, watched)
    data = None if result["data"] is None else bytes.fromhex(result["data"])
    value = result["value"]
    if isinstance(operation, op.ReadFile):
        data = file_views.read(operation, data or b"")
    elif isinstance(operation, op.ReadRing):
        data = perf_ring.shown(data or b"", operation.sample_type).encode()
    elif isinstance(operation, tracing.ReadPipe):
        lines = op.ReadFile("", "", op.View.RECORDS, operation.prefix, operation.sizes)
        data = file_views.read(lines, data or b"")
    elif isinstance(operation, tracing.ReadPage):
        number, pid, _ = results
        type_ = _number(bytes.fromhex(number["data"] or ""))
        data = trace_page.shown(data or b"", type_, pid["value"], operation.sizes).encode()
    elif isinstance(operation, race.Race):
        raw = bytes.fromhex(results[0]["data"] or "")
        value, data = 0, race.shown(operation, raw).encode()
    elif isinstance(operation, op.Stat):
        value = stat.S_IMODE(int.from_bytes((data or b"")[STAT_MODE], "little"))
        data = None
    elif isinstance(operation, credentials.Right):
        data = credential_calls.answer(operation, data)
    return op.Observation(value, "", data, watched)


def _number(text: bytes) -> int:
    """The decimal number that a file shows; -1, which is no id, where it shows none."""
    digits = text.strip()
    return int(digits) if digits.isdigit() and len(digits) < _LONGEST_NUMBER else -1
