"""Run a recorded program again, and find the first operation that is answered otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from conformance.client.caller import PENDING_WORK_S
from conformance.client.executor import Executor
from conformance.client.lockstep import Step
from conformance.listing.listing import Listing
from conformance.model.answers import Answer, differences, is_allowed
from conformance.ops import Observation, Operation, Watch
from conformance.ops.c_text import statement
from conformance.ops.encoding import decode_operation
from conformance.results.case_result import Mismatch
from conformance.results.recorded_program import RecordedAnswer, RecordedStep


class Diverged(Struct, frozen=True):
    """The first operation whose answer is none of the allowed ones; ``call`` is its line.

    ``as_recorded`` says that the recorded kernel gave this answer as well.
    """

    call: str
    mismatch: Mismatch
    as_recorded: bool


class RecordedRun:
    """A run of a recorded program in lock step with the recorded answers.

    ``other_course`` is the first step whose answer is another allowed one than the recorded kernel
    gave, 0 for none: later steps may depend on it.
    """

    def __init__(self, program: Sequence[RecordedStep], executor: Executor) -> None:
        self.other_course = 0
        self._program = program
        self._executor = executor
        self._steps: list[Step] = []
        self._lengths = _lengths(program)

    def run(self) -> Diverged | None:
        """Perform the operations until one diverges; None if all answers are allowed.

        Raises what the guest raises.
        """
        for number, recorded in enumerate(self._program, 1):
            allowed = tuple(map(_answer, recorded.allowed))
            step = self._step(number, recorded, allowed)
            self._steps.append(step)
            if step.differences:
                listing = Listing(self._steps)
                mismatch = listing.mismatch(step, step.differences[0])
                same = recorded.seen is not None and is_allowed(step.seen, [_compared(recorded)])
                return Diverged(listing.lines[-1], mismatch, same)
            course = [each for each in allowed if _is_course(each, recorded.seen)]
            if course and not is_allowed(step.seen, course):
                self.other_course = self.other_course or number
        return None

    @property
    def unanswered(self) -> tuple[str, bool]:
        """The operation that a crash left without an answer: its line, and whether it was the
        recorded one.
        """
        recorded = self._program[len(self._steps)]
        lines = Listing(self._steps, [decode_operation(recorded.operation)]).lines
        return lines[-1], recorded.seen is None

    def _step(self, number: int, recorded: RecordedStep, allowed: tuple[Answer, ...]) -> Step:
        operation, watches = decode_operation(recorded.operation), self._watches(recorded)
        seen = self._performed(operation, watches)
        if recorded.waited_s is not None:
            deadline = self._executor.deadline(PENDING_WORK_S, statement(operation))
            while not is_allowed(seen, allowed) and not deadline.expired:
                self._executor.pause(deadline)
                seen = self._performed(operation, watches)
        found = min((differences(each, seen) for each in allowed), key=len, default=[])
        return Step(number, operation, allowed, seen, tuple(found))

    def _performed(self, operation: Operation, watches: Sequence[Watch]) -> Observation:
        (seen,) = self._executor.execute([operation], watches)
        return seen

    def _watches(self, step: RecordedStep) -> list[Watch]:
        places = dict.fromkeys((m.actor, m.address) for a in step.allowed for m in a.memory)
        return [Watch(*place, self._lengths[place]) for place in places if place in self._lengths]


def _lengths(program: Sequence[RecordedStep]) -> dict[tuple[str, int], int]:
    """The length of each watched range, from the contents that were readable."""
    return {
        (each.actor, each.address): len(each.content) // 2
        for step in program
        for answer in (*step.allowed, *([step.seen] if step.seen else []))
        for each in answer.memory
        if each.content is not None
    }


def _answer(recorded: RecordedAnswer) -> Answer:
    return Answer(
        recorded.value,
        recorded.errno,
        _bytes(recorded.data),
        {(m.actor, m.address): _bytes(m.content) for m in recorded.memory},
        counted=recorded.counted,
    )


def _compared(step: RecordedStep) -> Answer:
    """The answer of the recorded kernel, as far as the allowed ones are compared: the size of a
    trace is another in every run.
    """
    assert step.seen is not None
    given = _answer(step.seen)
    value = given.value if any(each.value is not None for each in step.allowed) else None
    data = given.data if any(each.data is not None for each in step.allowed) else None
    return replace(given, value=value, data=data)


def _bytes(content: str | None) -> bytes | None:
    return None if content is None else bytes.fromhex(content)


def _is_course(answer: Answer, recorded: RecordedAnswer | None) -> bool:
    """Whether an allowed answer is the one that the recorded kernel gave."""
    if recorded is None:
        return False
    given = _answer(recorded)
    value = -1 if given.value is None else given.value
    seen = Observation(value, given.errno, given.data, tuple(given.memory.items()))
    return not differences(answer, seen)
