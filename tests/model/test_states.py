"""Several states while work is pending: equal ones count once."""

from __future__ import annotations

import pytest

from conformance.abi.profile import profile_for
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.memory import discard
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.model.state.copies import copied, frozen


@pytest.fixture
def model() -> Model:
    """The model of 6.12."""
    return Model(profile_for("6.12.117"))


@pytest.fixture
def ue(model: Model) -> UserEvents:
    """A client in lock step with the model as the kernel."""
    return UserEvents(Lockstep(model, ModelExecutor(Model(model.profile))))


def test_a_copy_has_the_same_bytes_and_profile(model: Model, ue: UserEvents) -> None:
    ue.process.open_data().register(ue.name() + " u32 a")
    copy = copied(model.world)
    assert frozen(copied(copy)) == frozen(copy)
    assert copy.profile is copy.table.profile is model.profile


def test_states_that_become_equal_are_one(model: Model, ue: UserEvents) -> None:
    page = ue.process.map()
    ue.process.open_data().register(ue.name(), word=ue.process.word_at(page, value=None))
    discard(ue.process, page)
    ue.tracefs.enable(ue.name())
    ue.lockstep.unwatch(ue.process.actor)
    for number in range(3):
        # The page may be faulted in before or after.
        ue.process.open_data().register(ue.name(f"{number}"))
        states = len(model.states())
        assert states == 2
    model.settle()
    assert not model.is_ambiguous
