"""Lock step: run every operation on model and kernel and compare at once.

Compares value, errno, data and all watched memory after every operation.  A difference in a
read-only operation is recorded and the program continues, so that one run shows all of them; any
other difference ends the program.

A round trip to a guest costs as much as many operations.  A program that runs ``ahead`` gets the
answer of the model where the model allows only one, and the kernel performs such operations later,
in one batch with the next that the model leaves open.  All are compared as in lock step.  If a
predicted answer is wrong, the program has run on with it: run it again, and not ahead.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from conformance import ops
from conformance.client.executor import Executor
from conformance.model.answers import Answer, Difference, differences, is_allowed
from conformance.model.errors import TooManyStates
from conformance.model.machine import Model
from conformance.ops import race
from conformance.ops.c_text import literal, statement
from conformance.ops.tasks import Clone

_LOOKING = (ops.ReadFile, ops.Load, ops.Stat, ops.Read, ops.ReadRing)
# Operations that create tasks, whose memory can be read once their answers are known.
_CREATES = (ops.Fork, Clone)
# Most operations in one batch of a program that runs ahead: each may wait for a grace period.
_MOST_AHEAD = 32


class Step(Struct, frozen=True):
    """One performed operation: allowed answers, observation, differences.

    ``waited_s`` is the time in seconds until an eventual answer, None for a single try.
    """

    number: int
    operation: ops.Operation
    allowed: tuple[Answer, ...]
    seen: ops.Observation
    differences: tuple[Difference, ...]
    waited_s: float | None = None


class Divergence(AssertionError):
    """The kernel gave an answer that the model does not allow."""

    def __init__(self, step: Step) -> None:
        found = step.differences[0]
        super().__init__(
            f"step {step.number}, {statement(step.operation)}: {found.field}: "
            f"allowed {found.allowed!r}, kernel answered {found.observed!r}"
        )
        self.step = step


def result_text(seen: ops.Observation | Answer) -> str:
    """An answer or observation as text: errno, value, data."""
    if seen.errno:
        return f"-1 {seen.errno}"
    value = "(not compared)" if seen.value is None else str(seen.value)
    return value if seen.data is None else f"{value} {literal(seen.data)}"


class Lockstep:
    """One program, run on the model and on an executor, ``ahead`` where the model is sure."""

    def __init__(self, model: Model, executor: Executor, *, ahead: bool = False) -> None:
        self.model = model
        self.steps: list[Step] = []
        # Operations that the kernel has not answered: its crash interrupts them.
        self.unanswered: list[ops.Operation] = []
        #: The program ran on with a wrong answer, or without one.
        self.misled = False
        self._executor = executor
        self._watches: list[ops.Watch] = []
        self._queue: list[ops.Operation] = []
        self._ahead = ahead
        # Operations that are still to be performed, and the answers that the model allows.
        self._predicted: list[tuple[ops.Operation, list[Answer]]] = []
        self._predicted_watches: tuple[ops.Watch, ...] = ()

    @property
    def mismatches(self) -> list[Step]:
        """Steps with differences."""
        return [step for step in self.steps if step.differences]

    @property
    def program(self) -> list[ops.Operation]:
        """The operations so far."""
        return [step.operation for step in self.steps]

    def watch(self, actor: str, address: int, length: int) -> None:
        """Compare a range of an actor's memory after every operation from now on.

        Of ranges with equal address the longest counts.
        """
        found = [w for w in self._watches if (w.actor, w.address) == (actor, address)]
        longest = max([length, *(watch.length for watch in found)])
        self._watches = [watch for watch in self._watches if watch not in found]
        self._watches.append(ops.Watch(actor, address, longest))

    def unwatch(self, actor: str) -> None:
        """Stop comparing the memory of an actor."""
        self._watches = [watch for watch in self._watches if watch.actor != actor]

    @property
    def watched(self) -> set[str]:
        """Actors with watched memory."""
        return {watch.actor for watch in self._watches}

    def watches_of(self, actor: str) -> list[ops.Watch]:
        """The watched ranges of an actor."""
        return [watch for watch in self._watches if watch.actor == actor]

    def _compared(self) -> tuple[ops.Watch, ...]:
        """The watched ranges; one of each that tasks share.

        They are read one after the other, and an enable word can change between two reads of it.
        """
        processes = self.model.world.processes
        ranges: dict[tuple[object, int], ops.Watch] = {}
        for watch in self._watches:
            process = processes.get(watch.actor)
            memory = watch.actor if process is None else id(process.memory)
            known = ranges.setdefault((memory, watch.address), watch)
            if known.length < watch.length:
                ranges[memory, watch.address] = watch
        return tuple(ranges.values())

    def queue(self, *program: ops.Operation) -> None:
        """Run operations in one batch with the next ones.

        Their answers are compared, but not returned.
        """
        self._queue += program

    def run(self, *program: ops.Operation) -> list[ops.Observation]:
        """Run operations in one batch; one observation each.

        Raises Divergence at the first operation that is not read-only and whose answer the model
        does not allow.
        """
        watches = self._compared()
        batch = [*self._queue, *program]
        self._queue.clear()
        if self._ahead:
            observations = [self._answer(operation, watches) for operation in batch]
        else:
            self.catch_up()
            observations = self._execute(batch, watches)
            for operation, seen in zip(batch, observations, strict=True):
                allowed = self.model.step(operation, watches)
                self._judge(operation, allowed, seen)
        return observations[len(observations) - len(program) :]

    def catch_up(self) -> None:
        """Perform the operations whose answers are predicted.

        Raises Divergence at the first one whose answer differs, and what the executor raises.
        """
        if self._predicted:
            self._perform([])

    def _answer(self, operation: ops.Operation, watches: tuple[ops.Watch, ...]) -> ops.Observation:
        """The predicted answer to an operation, or that of the kernel where there is none."""
        if len(self._predicted) == _MOST_AHEAD or not set(self._predicted_watches) <= set(watches):
            self.catch_up()
        self._predicted_watches = watches
        allowed = self.model.step(operation, watches)
        predicted = only_observation(operation, allowed)
        if predicted is not None:
            self.model.narrow(operation, predicted)
            self._predicted.append((operation, allowed))
            return predicted
        (seen,) = self._perform([operation])
        self._judge(operation, allowed, seen)
        return seen

    def _perform(self, last: list[ops.Operation]) -> list[ops.Observation]:
        """Catch up, and perform ``last`` in the same batch; its observations."""
        predicted, self._predicted = self._predicted, []
        self.misled = bool(predicted)
        batch = [*(operation for operation, _ in predicted), *last]
        observations = self._execute(batch, self._predicted_watches)
        for (operation, allowed), answer in zip(predicted, observations, strict=False):
            # Ranges that were watched later are not compared.
            watched = tuple(each for each in answer.watched if each[0] in allowed[0].memory)
            seen = replace(answer, watched=watched)
            self._record(operation, allowed, seen, differences(allowed[0], seen), fatal=True)
            # Memory that an actor has no access to is only read after the last operation, and none
            # after a spawn, which the harness performs.
            if len(watched) < len(allowed[0].memory) and not isinstance(operation, ops.Spawn):
                self._ahead = False
        self.misled = False
        return observations[len(predicted) :]

    def eventually(self, operation: ops.Operation, seconds: float) -> ops.Observation:
        """Repeat an operation until it is answered as if no work were pending.

        The operation must change nothing until it succeeds.  ``seconds`` are those of an idle
        machine. A timeout is a difference; so is an answer on the way that no pending work
        explains.
        """
        self.run()
        self.catch_up()
        watches = self._compared()
        before = self.model.states()
        meanwhile: list[Answer] | None = None
        self.model.settle()
        allowed = self.model.step(operation, watches)
        deadline = self._executor.deadline(seconds, statement(operation))
        started = time.monotonic()
        while True:
            (seen,) = self._execute([operation], watches)
            waited = time.monotonic() - started
            if is_allowed(seen, allowed) or deadline.expired:
                break
            if meanwhile is None:
                meanwhile = self._on_the_way(operation, watches, before)
            fitting = [each for each in meanwhile if not differences(each, seen)]
            if meanwhile and not fitting:
                break
            if fitting and all(each.bug for each in fitting):
                self.model.bugs.add(fitting[0].bug)
            self._executor.pause(deadline)
        self._judge(operation, allowed, seen, waited)
        return seen

    def _on_the_way(
        self, operation: ops.Operation, watches: Sequence[ops.Watch], states: Sequence[bytes]
    ) -> list[Answer]:
        """The answers that pending work explains; [] if there are too many to know."""
        try:
            return self.model.foresee(operation, watches, states)
        except TooManyStates:
            return []

    def _execute(
        self, batch: list[ops.Operation], watches: Sequence[ops.Watch]
    ) -> list[ops.Observation]:
        self.unanswered = batch
        observations = self._executor.execute(batch, watches)
        self.unanswered = []
        return observations

    def _judge(
        self,
        operation: ops.Operation,
        allowed: Sequence[Answer],
        seen: ops.Observation,
        waited_s: float | None = None,
    ) -> None:
        found = self.model.narrow(operation, seen)
        fatal = not isinstance(operation, _LOOKING)
        self._record(operation, allowed, seen, found, waited_s, fatal=fatal)

    def _record(
        self,
        operation: ops.Operation,
        allowed: Sequence[Answer],
        seen: ops.Observation,
        found: Sequence[Difference],
        waited_s: float | None = None,
        *,
        fatal: bool,
    ) -> None:
        number = len(self.steps) + 1
        step = Step(number, operation, tuple(allowed), seen, tuple(found), waited_s)
        self.steps.append(step)
        if found and fatal:
            raise Divergence(step)


def only_observation(operation: ops.Operation, allowed: Sequence[Answer]) -> ops.Observation | None:
    """The observation that the model predicts; None if it leaves any part of it open."""
    answer, *others = allowed
    watched = tuple(answer.memory.items())
    if others or answer.counted or any(isinstance(s, _CREATES) for s in race.steps_of(operation)):
        return None
    if answer.errno:
        return ops.Observation(-1, answer.errno, None, watched)
    if answer.value is None or (answer.data is None and isinstance(operation, _LOOKING)):
        return None
    return ops.Observation(answer.value, "", answer.data, watched)
