"""A failed comparison shows the values of the kernel, also where the model leaves them open."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest

from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.ops import KernelMemory, Observation, Operation, Watch
from conformance.runner.literal_values import Values, compared_values
from tests.cases.variants import PROFILE
from tests.drills import mistakes

SERIAL = 7


class Growing(ModelExecutor):
    """A kernel whose memory grows by 720 kB between two looks."""

    def __init__(self) -> None:
        super().__init__(Model(PROFILE))
        self._grown = count(60_000, 720)

    def execute(
        self, operations: Sequence[Operation], watches: Sequence[Watch]
    ) -> list[Observation]:
        seen = super().execute(operations, watches)
        return [
            Observation(next(self._grown)) if isinstance(each, KernelMemory) else answer
            for each, answer in zip(operations, seen, strict=True)
        ]


def test_a_computed_number_is_that_of_the_kernel() -> None:
    lockstep = Lockstep(Model(PROFILE), Growing())
    with pytest.raises(AssertionError) as caught:
        mistakes.test_computed(UserEvents(lockstep, SERIAL))
    found = compared_values(caught.value, PROFILE, lockstep.steps, SERIAL)
    assert found == Values("720", "0")


def test_a_case_that_goes_another_way_has_no_values() -> None:
    lockstep = Lockstep(Model(PROFILE), Growing())
    with pytest.raises(AssertionError) as caught:
        mistakes.test_computed(UserEvents(lockstep, SERIAL))
    assert compared_values(caught.value, PROFILE, lockstep.steps[:-1], SERIAL) is None
