"""Cases hold whatever ids the kernel gives the formats of a name: it counts from its boot."""

from __future__ import annotations

import pytest

from conformance.client.executor import ModelExecutor
from conformance.model.machine import Model
from tests.cases.variants import PROFILE, Attempt, all_variants


def counted(until: int) -> Model:
    """A model that has given this number of ids."""
    model = Model(PROFILE)
    model.world.table.multi_id = until
    return model


@pytest.mark.parametrize("until", [0, 9, 15, 255])
def test_cases_hold(until: int) -> None:
    """As text, f comes after 10."""
    formats = [each for each in all_variants() if "multi_format" in each.case.needs]
    assert len(formats) >= 50
    wrong = {}
    for variant in formats:
        attempt = Attempt(ModelExecutor(counted(until)), model=counted(until))
        outcome = attempt.run(variant)
        if outcome.raised or outcome.accused:
            wrong[variant.id] = repr(outcome.raised)
    assert wrong == {}
