"""Races on the model: every order of their steps, and what is allowed of many passes."""

from __future__ import annotations

import os

import pytest

from conformance.abi.profile import profile_for
from conformance.client.tracefs import STATUS
from conformance.model.answers import Answer, differences
from conformance.model.errors import TooManyStates
from conformance.model.machine import Model
from conformance.ops import race as races
from conformance.ops import syscalls as op
from conformance.ops.race import Add, Race, Track
from conformance.ops.tasks import THREAD, Clone, SpawnDriver

PLACE = 0x2000_0000


def two_tasks() -> Model:
    """A model with tasks a and b, which share memory and descriptors; 7 and 8 are open files."""
    model = Model(profile_for("6.12"))
    for operation in (
        SpawnDriver("d"),
        Clone("d", "a", 0),
        Clone("a", "b", THREAD),
        op.Mmap("a", PLACE, 4096, 3, 2),
        op.Open("a", 7, STATUS, os.O_RDONLY),
        op.Open("a", 8, STATUS, os.O_RDONLY),
    ):
        model.step(operation)
        model.narrow(operation, op.Observation(0))
    return model


def answers(model: Model, *tracks: Track) -> list[Answer]:
    return model.step(Race(tracks[0].actor, tracks))


def test_of_two_who_close_one_descriptor_one_succeeds() -> None:
    close = [Track(actor, (op.Close(actor, 7),)) for actor in ("a", "b")]
    told = {(each.data or b"").decode() for each in answers(two_tasks(), *close)}
    assert told == {"a.0: 0 *1\nb.0: EBADF *1\n", "a.0: EBADF *1\nb.0: 0 *1\n"}


def test_what_was_told_decides_what_follows() -> None:
    model = two_tasks()
    race = Race(
        "a", (Track("a", (op.Close("a", 7), op.Close("a", 8))), Track("b", (op.Close("b", 8),)))
    )
    assert len(model.step(race)) == 2
    told = b"a.0: 0 *1\na.1: EBADF *1\nb.0: 0 *1\n"
    assert model.narrow(race, op.Observation(0, "", told)) == []
    assert [each.errno for each in model.step(op.Close("a", 7))] == ["EBADF"]


def test_of_many_passes_any_number_of_what_is_allowed_will_do() -> None:
    model = two_tasks()
    looking, closing = Track("a", (op.Lseek("a", 7, 0, 0),), 50), Track("b", (op.Close("b", 7),))
    answer, *others = answers(model, looking, closing)
    assert {each.data for each in others} <= {answer.data}
    assert answer.counted
    assert answer.data == b"a.0: 0|EBADF *50\nb.0: 0 *1\n"
    for seen, wrong in (
        (b"a.0: 0 *3, EBADF *47\nb.0: 0 *1\n", 0),
        (b"a.0: EBADF *50\nb.0: 0 *1\n", 0),
        (b"a.0: 0 *3, EBADF *46\nb.0: 0 *1\n", 1),
        (b"a.0: 0 *3, EIO *47\nb.0: 0 *1\n", 1),
        (b"", 1),
    ):
        assert len(differences(answer, op.Observation(0, "", seen))) == wrong


def test_no_addition_is_lost_in_any_order() -> None:
    model = two_tasks()
    race = Race(
        "a", (Track("a", (Add("a", PLACE, 1),), 40), Track("b", (Add("b", PLACE, 256, 3),), 5))
    )
    (answer,) = model.step(race)
    model.narrow(race, op.Observation(0, "", answer.example))
    (memory,) = model.step(op.Load("a", PLACE, 4))
    assert memory.data == (40 + 5 * 3 * 256).to_bytes(4, "little")


def test_too_many_orders_are_refused() -> None:
    """Who was the last to store differs from place to place."""
    steps = {
        actor: tuple(op.Store(actor, PLACE + n, actor.encode()) for n in range(16))
        for actor in ("a", "b")
    }
    with pytest.raises(TooManyStates):
        answers(two_tasks(), *(Track(actor, each) for actor, each in steps.items()))


def test_the_model_as_a_kernel_tells_counts() -> None:
    race = Race("a", (Track("a", (op.Close("a", 9),), 30), Track("b", (op.Close("b", 7),))))
    (answer,) = two_tasks().step(race)
    assert races.tallies((answer.example or b"").decode()) == [[{"EBADF": 30}], [{"0": 1}]]
