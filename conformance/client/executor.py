"""Executors: the protocol, and the model as an executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from conformance.model.machine import Model
from conformance.ops import Observation, Operation, Watch


class Deadline(Protocol):
    """A point in time after which waiting ends."""

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        ...

    def remaining(self) -> float:
        """Seconds left."""
        ...


class Executor(Protocol):
    """Performs operations and returns the observations."""

    def execute(
        self, operations: Sequence[Operation], watches: Sequence[Watch]
    ) -> list[Observation]:
        """Perform operations in order; one observation each."""
        ...

    def deadline(self, seconds: float, what: str) -> Deadline:
        """A deadline in seconds of an idle machine, scaled to the speed of the guest."""
        ...

    def pause(self, deadline: Deadline) -> None:
        """Sleep a little before the next try."""
        ...


class ModelDeadline:
    """Deadline of the model: expires after two tries, since no time passes."""

    def __init__(self) -> None:
        self._looks = 0

    @property
    def expired(self) -> bool:
        """True from the third query on."""
        self._looks += 1
        return self._looks > 2

    def remaining(self) -> float:
        """No time passes."""
        return 0.0


class ModelExecutor:
    """The model as a kernel, for self-checks and fault injection.

    ``eager`` performs pending work before every operation, otherwise only while a case waits: a
    case must hold either way.
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
        """The deadline of the model."""
        return ModelDeadline()

    def pause(self, deadline: Deadline) -> None:
        """Perform all pending work."""
        self._model.settle()
