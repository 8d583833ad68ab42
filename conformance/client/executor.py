"""Executors of programs: the protocol, and the model in the place of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from conformance.model.machine import Model
from conformance.ops import Observation, Operation, Watch


class Deadline(Protocol):
    """A point in time handed down by whoever waits."""

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        ...

    def remaining(self) -> float:
        """Seconds left."""
        ...


class Executor(Protocol):
    """Performs operations and says what came back."""

    def execute(
        self, operations: Sequence[Operation], watches: Sequence[Watch]
    ) -> list[Observation]:
        """Perform operations in order; one observation each."""
        ...

    def deadline(self, seconds: float, what: str) -> Deadline:
        """A deadline in seconds of an idle machine, scaled to the speed of the guest."""
        ...

    def pause(self, deadline: Deadline) -> None:
        """Let a little time pass before asking again."""
        ...


class ModelDeadline:
    """The deadline of the model, which needs no time: one look after settling is enough."""

    def __init__(self) -> None:
        self._looks = 0

    @property
    def expired(self) -> bool:
        """True from the third question on."""
        self._looks += 1
        return self._looks > 2

    def remaining(self) -> float:
        """No time passes."""
        return 0.0


class ModelExecutor:
    """The model as a kernel: for self-checks and for doubles that lie.

    ``eager`` lets pending work happen before every operation, else it happens only while
    somebody waits for it: a case that holds for a kernel must hold for both.
    """

    def __init__(self, model: Model, *, eager: bool = False) -> None:
        self._model = model
        self._eager = eager

    def execute(
        self, operations: Sequence[Operation], watches: Sequence[Watch]
    ) -> list[Observation]:
        """Perform operations on the model.  Raises ModelError for what is not modelled."""
        return [self._perform(operation, watches) for operation in operations]

    def _perform(self, operation: Operation, watches: Sequence[Watch]) -> Observation:
        if self._eager:
            self._model.settle()
        answer = self._model.step(operation, watches)[0]
        watched = tuple(answer.memory.items())
        data = answer.data if answer.example is None else answer.example
        seen = Observation(answer.value or 0, answer.errno, data, watched)
        self._model.narrow(operation, seen)
        return seen

    def deadline(self, seconds: float, what: str) -> ModelDeadline:
        """The model needs no time."""
        return ModelDeadline()

    def pause(self, deadline: Deadline) -> None:
        """Everything pending happens while somebody waits."""
        self._model.settle()
