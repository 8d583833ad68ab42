"""Run a recorded program again, and find the first operation that is answered otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.client.executor import Executor
from conformance.model.answers import Answer, Difference, differences
from conformance.ops import Observation, Operation, Watch
from conformance.ops.c_text import statement
from conformance.ops.encoding import decode_operation
from conformance.results.recorded_program import RecordedAnswer, RecordedStep

# Limit for deferred kernel work in seconds of an idle machine, as cases have.
_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Diverged:
    """The first operation whose answer is none of the allowed ones.

    ``as_recorded`` says that the recorded kernel gave this answer as well.
    """

    number: int
    operation: Operation
    difference: Difference
    as_recorded: bool

    def __str__(self) -> str:
        found = self.difference
        word = "as recorded" if self.as_recorded else "otherwise than recorded"
        return (
            f"step {self.number}, {statement(self.operation)} {found.field}: "
            f"allowed {found.allowed!r}, answered {found.observed!r} ({word})"
        )


def run_recorded(program: Sequence[RecordedStep], executor: Executor) -> Diverged | None:
    """Perform the operations in lock step with the recorded answers; None if all are allowed.

    Raises what the guest raises: the last operation of a crash has no answer.
    """
    lengths = _lengths(program)
    for number, step in enumerate(program, 1):
        operation = decode_operation(step.operation)
        allowed = [_answer(each) for each in step.allowed]
        watches = _watches(step, lengths)
        (seen,) = executor.execute([operation], watches)
        if step.waited_s is not None:
            deadline = executor.deadline(_WAIT_S, statement(operation))
            while not _conforms(seen, allowed) and not deadline.expired:
                executor.pause(deadline)
                (seen,) = executor.execute([operation], watches)
        if allowed and not _conforms(seen, allowed):
            found = min((differences(each, seen) for each in allowed), key=len)
            same = step.seen is not None and _conforms(seen, [_answer(step.seen)])
            return Diverged(number, operation, found[0], same)
    return None


def shown(program: Sequence[RecordedStep]) -> str:
    """The last operation of a program, for a kernel that did not answer it."""
    last = decode_operation(program[-1].operation)
    return f"step {len(program)}, {statement(last)}"


def _lengths(program: Sequence[RecordedStep]) -> dict[tuple[str, int], int]:
    """The length of each watched range, from the contents that were readable."""
    return {
        (each.actor, each.address): len(each.content) // 2
        for step in program
        for answer in (*step.allowed, *([step.seen] if step.seen else []))
        for each in answer.memory
        if each.content is not None
    }


def _watches(step: RecordedStep, lengths: dict[tuple[str, int], int]) -> list[Watch]:
    places = dict.fromkeys((m.actor, m.address) for a in step.allowed for m in a.memory)
    return [Watch(*place, lengths[place]) for place in places if place in lengths]


def _answer(recorded: RecordedAnswer) -> Answer:
    return Answer(
        recorded.value,
        recorded.errno,
        _bytes(recorded.data),
        {(m.actor, m.address): _bytes(m.content) for m in recorded.memory},
        counted=recorded.counted,
    )


def _bytes(content: str | None) -> bytes | None:
    return None if content is None else bytes.fromhex(content)


def _conforms(seen: Observation, allowed: Sequence[Answer]) -> bool:
    return any(not differences(answer, seen) for answer in allowed)
