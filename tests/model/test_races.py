"""Races: all interleavings of one pass, and the results of many passes."""

from __future__ import annotations

import os

import pytest

from conformance import ops
from conformance.client.executor import ModelExecutor
from conformance.client.tracefs import STATUS
from conformance.model.answers import Answer, differences
from conformance.model.errors import TooManyStates
from conformance.model.machine import Model
from conformance.ops import race as races
from conformance.ops.race import Add, Race, Track
from conformance.ops.tasks import THREAD, Clone, SpawnDriver
from tests.cases.variants import PROFILE

ADDRESS = 0x2000_0000


def two_tasks() -> Model:
    """Tasks a and b, which share memory and the descriptors 7 and 8."""
    model = Model(PROFILE)
    program = (
        SpawnDriver("d"),
        Clone("d", "a", 0),
        Clone("a", "b", THREAD),
        ops.Mmap("a", ADDRESS, 4096, 3, 2),
        ops.Open("a", 7, STATUS, os.O_RDONLY),
        ops.Open("a", 8, STATUS, os.O_RDONLY),
    )
    ModelExecutor(model).execute(program, ())
    return model


def answers(model: Model, *tracks: Track) -> list[Answer]:
    return model.step(Race(tracks[0].actor, tracks))


def test_one_of_two_closes_succeeds() -> None:
    close = [Track(actor, (ops.Close(actor, 7),)) for actor in ("a", "b")]
    results = {(each.data or b"").decode() for each in answers(two_tasks(), *close)}
    assert results == {"a.0: 0 *1\nb.0: EBADF *1\n", "a.0: EBADF *1\nb.0: 0 *1\n"}


def test_a_result_selects_the_next_states() -> None:
    model = two_tasks()
    race = Race(
        "a", (Track("a", (ops.Close("a", 7), ops.Close("a", 8))), Track("b", (ops.Close("b", 8),)))
    )
    assert len(model.step(race)) == 2
    results = b"a.0: 0 *1\na.1: EBADF *1\nb.0: 0 *1\n"
    assert model.narrow(race, ops.Observation(0, "", results)) == []
    assert [each.errno for each in model.step(ops.Close("a", 7))] == ["EBADF"]


def test_results_of_many_passes_are_sets() -> None:
    model = two_tasks()
    seeking, closing = Track("a", (ops.Lseek("a", 7, 0, 0),), 50), Track("b", (ops.Close("b", 7),))
    answer, *others = answers(model, seeking, closing)
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
        assert len(differences(answer, ops.Observation(0, "", seen))) == wrong


def test_no_addition_is_lost() -> None:
    model = two_tasks()
    race = Race(
        "a", (Track("a", (Add("a", ADDRESS, 1),), 40), Track("b", (Add("b", ADDRESS, 256, 3),), 5))
    )
    (answer,) = model.step(race)
    model.narrow(race, ops.Observation(0, "", answer.example))
    (memory,) = model.step(ops.Load("a", ADDRESS, 4))
    assert memory.data == (40 + 5 * 3 * 256).to_bytes(4, "little")


def test_too_many_interleavings_are_refused() -> None:
    """The final content depends on the last store at each address."""
    steps = {
        actor: tuple(ops.Store(actor, ADDRESS + n, actor.encode()) for n in range(16))
        for actor in ("a", "b")
    }
    with pytest.raises(TooManyStates):
        answers(two_tasks(), *(Track(actor, each) for actor, each in steps.items()))


def test_the_example_has_counts() -> None:
    race = Race("a", (Track("a", (ops.Close("a", 9),), 30), Track("b", (ops.Close("b", 7),))))
    (answer,) = two_tasks().step(race)
    assert races.parse_tallies((answer.example or b"").decode()) == [[{"EBADF": 30}], [{"0": 1}]]
