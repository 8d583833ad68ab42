"""Record a program that ran in lock step as data."""

from __future__ import annotations

from conformance.client.lockstep import Lockstep, Step
from conformance.model.answers import Answer
from conformance.results.recorded_program import RecordedAnswer, RecordedMemory, RecordedStep

MOST_OPERATIONS = 2000
"""Longest program that a result keeps; storms have more."""
MOST_BYTES = 1 << 20
"""Most bytes of answers and stored data that a result keeps."""


def record(lockstep: Lockstep) -> tuple[RecordedStep, ...]:
    """The operations so far with their answers, and those that the kernel did not answer."""
    lost = [RecordedStep(operation.encode()) for operation in lockstep.unanswered]
    return (*map(_step, lockstep.steps), *lost)


def record_within_limits(lockstep: Lockstep) -> tuple[tuple[RecordedStep, ...], str]:
    """The recorded program, or none and the reason why it is left out."""
    number = len(lockstep.steps) + len(lockstep.unanswered)
    if number > MOST_OPERATIONS:
        return (), f"{number} operations are too many to be kept with the result"
    program = record(lockstep)
    size = len(repr(program))
    if size > MOST_BYTES:
        return (), f"{size} bytes of operations and answers are too many to be kept"
    return program, ""


def _step(step: Step) -> RecordedStep:
    seen = step.seen
    memory = _memory(seen.watched)
    answer = RecordedAnswer(seen.value, seen.errno, _hexadecimal(seen.data), memory)
    allowed = tuple(dict.fromkeys(map(_allowed, step.allowed)))
    return RecordedStep(step.operation.encode(), allowed, answer, step.waited_s)


def _allowed(answer: Answer) -> RecordedAnswer:
    memory = _memory(tuple(answer.memory.items()))
    data = _hexadecimal(answer.data)
    return RecordedAnswer(answer.value, answer.errno, data, memory, answer.counted)


def _memory(
    watched: tuple[tuple[tuple[str, int], bytes | None], ...],
) -> tuple[RecordedMemory, ...]:
    return tuple(
        RecordedMemory(actor, address, _hexadecimal(content))
        for (actor, address), content in watched
    )


def _hexadecimal(content: bytes | None) -> str | None:
    return None if content is None else content.hex()
