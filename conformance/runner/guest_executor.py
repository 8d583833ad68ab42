"""Executor that performs operations in a guest, through a channel of generic calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from errno import EAGAIN
from itertools import groupby
from typing import Any

from conformance import ops
from conformance.client.executor import Deadline
from conformance.ops import race, tasks
from conformance.ops.calls import Call
from conformance.ops.operation import Reply
from conformance.ops.programs import PROGRAM_S
from conformance.runner.guest import Channel
from conformance.runner.patience import Patience
from conformance.runner.process_pool import Enablers, PooledProcess, ProcessPool, Returned

# Instead of watched memory, after a call that is not the last one of an operation.
_NOT_WATCHED = "-"
_UNWATCHABLE = frozenset({"sys", "peek", "poke", "put_fd", "take_fd"})
_ENDS = (ops.Exit, tasks.ExitTask, tasks.Die)


class GuestExecutor:
    """Performs the operations of one program in pooled processes of a guest."""

    def __init__(self, channel: Channel, pool: ProcessPool, patience: Patience) -> None:
        self._channel = channel
        self._patience = patience
        self._pool = pool
        self._processes: dict[str, PooledProcess] = {}

    def execute(
        self, operations: Sequence[ops.Operation], watches: Sequence[ops.Watch]
    ) -> list[ops.Observation]:
        """Perform operations; consecutive ones of one actor are one batch.

        Raises the channel's errors if the guest does not answer.
        """
        seen: list[ops.Observation] = []
        for actor, batch in groupby(operations, key=lambda operation: operation.actor):
            for spawns, part in groupby(batch, key=lambda each: isinstance(each, ops.Spawn)):
                if spawns:
                    seen += [self._spawn(operation) for operation in part]
                else:
                    for programs, plain in groupby(part, key=_is_program):
                        perform = self._programs if programs else self._batch
                        seen += perform(self._processes[actor], list(plain), watches)
        return seen

    def _spawn(self, operation: ops.Operation) -> ops.Observation:
        fresh = isinstance(operation, tasks.SpawnDriver)
        self._processes[operation.actor] = self._pool.borrow(operation.actor, fresh=fresh)
        return ops.Observation(0)

    def _batch(
        self, process: PooledProcess, batch: list[ops.Operation], watches: Sequence[ops.Watch]
    ) -> list[ops.Observation]:
        for step in (step for each in batch for step in race.steps_of(each)):
            if isinstance(step, ops.Fork):
                self._processes[step.child] = self._pool.child(process)
            elif isinstance(step, tasks.Clone):
                self._processes[step.child] = self._pool.task(process)
        compiled = [process.driven(each.renamed(self._name).calls()) for each in batch]
        ranges = [(self._name(w.actor), w.address, w.length) for w in watches]
        flat = [call for calls in compiled for call in _watched_last(calls)]
        performer = process.driver or process
        results = iter(self._channel.call(performer.name, flat, ranges))
        seen = []
        for operation, calls in zip(batch, compiled, strict=True):
            mine = [next(results) for _ in calls]
            seen.append(_observation(operation, mine, watches))
            process.note(operation, ok=seen[-1].ok)
            for step in race.steps_of(operation):
                if isinstance(step, _ENDS):
                    del self._processes[step.actor]
        return seen

    def _programs(
        self, process: PooledProcess, batch: list[ops.Operation], watches: Sequence[ops.Watch]
    ) -> list[ops.Observation]:
        """Run programs one after another, each until it ends, for at most PROGRAM_S."""
        ranges = [(self._name(w.actor), w.address, w.length) for w in watches]
        seen = []
        for operation in batch:
            results = run_to_end(self._channel, process.name, operation, ranges)
            seen.append(_observation(operation, results, watches))
            process.note(operation, ok=seen[-1].ok)
        return seen

    def _name(self, actor: str) -> str:
        """The name of an actor in the guest; "" if it has ended: its memory is not readable."""
        process = self._processes.get(actor)
        return "" if process is None else process.name

    def give_back(self, enablers: Mapping[str, Enablers], then: Sequence[Call] = ()) -> Returned:
        """Return the processes of a program that passed to the pool; see ProcessPool.give_back.

        ``enablers`` are those that each actor still has registered.
        """
        used = [(each, enablers.get(actor, Enablers())) for actor, each in self._processes.items()]
        self._processes.clear()
        return self._pool.give_back(used, then)

    def deadline(self, seconds: float, what: str) -> Deadline:
        """A deadline scaled to the speed of the guest, and to the patience that is left."""
        return self._patience.deadline(self._channel, seconds, what)

    def pause(self, deadline: Deadline) -> None:
        """Sleep a little, never past the deadline."""
        self._channel.pause(deadline)


def run_to_end(
    channel: Channel,
    actor: str,
    operation: ops.Operation,
    watch: Sequence[tuple[str, int, int]] = (),
) -> list[dict[str, Any]]:
    """Start a program, and wait until it ends, for at most PROGRAM_S; errno EAGAIN after that."""
    deadline = channel.deadline(PROGRAM_S, operation.c_text())
    start, end = operation.calls()
    results = channel.call(actor, [start])
    if not results[0]["errno"]:
        results = channel.call(actor, [end], watch)
    while results[0]["errno"] == EAGAIN and not deadline.expired:
        channel.pause(deadline)
        results = channel.call(actor, [end], watch)
    return results


def _is_program(operation: ops.Operation) -> bool:
    return isinstance(operation, ops.RunProgram)


def _watched_last(calls: Sequence[Call]) -> list[Call]:
    """The calls of one operation; watched memory is read after the last one only."""
    *before, last = calls
    return [["unseen", call] if call[0] in _UNWATCHABLE else call for call in before] + [last]


def _observation(
    operation: ops.Operation, results: list[dict[str, Any]], watches: Sequence[ops.Watch]
) -> ops.Observation:
    watched = tuple(
        ((w.actor, w.address), None if text is None else bytes.fromhex(text))
        for w, text in zip(watches, results[-1]["watch"], strict=True)
        if text != _NOT_WATCHED
    )
    replies = [_reply(result) for result in results]
    number = next((reply.errno for reply in replies if reply.errno), 0)
    if number:
        return ops.Observation(-1, ops.error_name(number), None, watched)
    value, data = operation.decode(replies)
    return ops.Observation(value, "", data, watched)


def _reply(result: dict[str, Any]) -> Reply:
    data = result["data"]
    return Reply(result["value"], result["errno"], None if data is None else bytes.fromhex(data))
