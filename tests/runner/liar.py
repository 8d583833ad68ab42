"""A wrong kernel: the model as the kernel, with one answer changed.

Wrong answers at a step are those that differ from every allowed answer of an honest run; the
comparison in the lock step is not involved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from conformance.client.executor import Deadline, ModelExecutor
from conformance.client.lockstep import Step
from conformance.model.machine import Model
from conformance.ops import Observation, Operation, Watch
from tests.cases.variants import PROFILE, Attempt, Outcome, Variant

# Errors of user_events itself, so that a lie is plausible.
_ERRORS = ("EINVAL", "EBADF", "ENOENT", "EFAULT", "EBUSY", "EPERM", "E2BIG", "ENOTTY")


class Lie(Struct, frozen=True):
    """The wrong answer at a step.  Steps count from 1."""

    step: int
    kind: str
    answer: Observation


class LyingExecutor:
    """The model as a kernel with one wrong answer.

    An operation that is repeated gets the wrong answer every time, or with ``once`` the first time
    only.
    """

    def __init__(self, lie: Lie, *, once: bool = False, ahead: bool = False) -> None:
        self._truth = ModelExecutor(Model(PROFILE))
        self._lie = lie
        self._once = once
        self._told = 0
        self.attempt = Attempt(self, ahead=ahead)

    def execute(
        self, operations: Sequence[Operation], watches: Sequence[Watch]
    ) -> list[Observation]:
        """Perform operations on the model and change the answer of one of them."""
        seen = self._truth.execute(operations, watches)
        position = self._lie.step - len(self.attempt.lockstep.steps) - 1
        if 0 <= position < len(seen) and not (self._once and self._told):
            seen[position] = self._lie.answer
            self._told += 1
        return seen

    def deadline(self, seconds: float, what: str) -> Deadline:
        """The model answers at once."""
        return self._truth.deadline(seconds, what)

    def pause(self, deadline: Deadline) -> None:
        """Everything pending happens during a wait."""
        self._truth.pause(deadline)

    @property
    def has_lied(self) -> bool:
        """Whether the wrong answer was given."""
        return self._told > 0


def tell(variant: Variant, lie: Lie, *, once: bool = False, ahead: bool = False) -> Outcome:
    """Run a variant on a wrong kernel; it must reach the lie."""
    liar = LyingExecutor(lie, once=once, ahead=ahead)
    outcome = liar.attempt.run(variant)
    assert liar.has_lied, f"{variant.id}: step {lie.step} was never reached"
    return outcome


def lies(steps: Sequence[Step]) -> Iterator[Lie]:
    """Every kind of lie about every step of an honest run."""
    for step in steps:
        yield from _errno_lies(step)
        if not step.seen.errno:
            yield from _value_lies(step)
            yield from _data_lies(step)
        yield from _memory_lies(step)


def _errno_lies(step: Step) -> Iterator[Lie]:
    allowed = {answer.errno for answer in step.allowed}
    wrong = [name for name in _ERRORS if name not in allowed][:2]
    for name in wrong:
        yield Lie(step.number, "errno", replace(step.seen, value=-1, errno=name, data=None))
    if "" not in allowed:
        yield Lie(step.number, "success", replace(step.seen, value=0, errno=""))


def _value_lies(step: Step) -> Iterator[Lie]:
    allowed = {answer.value for answer in step.allowed}
    if None in allowed:
        return  # a pid, or the length of a text that is compared itself
    for value in (step.seen.value + 1, step.seen.value - 1, -step.seen.value):
        if value not in allowed:
            yield Lie(step.number, "value", replace(step.seen, value=value))


def _data_lies(step: Step) -> Iterator[Lie]:
    allowed = {answer.data for answer in step.allowed}
    data = step.seen.data
    if data is None or None in allowed:
        return
    lines = data.splitlines(keepends=True)
    for kind, wrong in {
        "text, a byte changed": data[:-1] + bytes([data[-1] ^ 1]) if data else b"?",
        "text, the first byte changed": bytes([data[0] ^ 0x20]) + data[1:] if data else b"\0",
        "text, a line missing": b"".join(lines[1:]),
        "text, a line twice": b"".join(lines[:1] + lines),
        "text, cut short": data[: len(data) // 2],
        "text, something behind it": data + b"\n",
    }.items():
        if wrong not in allowed:
            yield Lie(step.number, kind, replace(step.seen, data=wrong))


def _memory_lies(step: Step) -> Iterator[Lie]:
    for index, (where, content) in enumerate(step.seen.watched):
        allowed = {answer.memory[where] for answer in step.allowed}
        for kind, wrong in _wrong_memory(content):
            if wrong not in allowed:
                watched = list(step.seen.watched)
                watched[index] = (where, wrong)
                yield Lie(step.number, kind, replace(step.seen, watched=tuple(watched)))


def _wrong_memory(content: bytes | None) -> Iterator[tuple[str, bytes | None]]:
    """Watched words that are unchanged, shifted, or unmapped."""
    if content is None:
        yield "memory, readable", bytes(4)
        return
    middle = len(content) // 2
    yield "memory, not readable", None
    yield "memory, the guard before", _flipped(content, 0)
    yield "memory, the guard behind", _flipped(content, len(content) - 1)
    yield "memory, the word", _flipped(content, min(8, middle))
    yield "memory, inside the word", _flipped(content, middle)


def _flipped(content: bytes, position: int) -> bytes:
    """Memory with the lowest bit of one byte changed."""
    changed = bytearray(content)
    changed[position] ^= 1
    return bytes(changed)
