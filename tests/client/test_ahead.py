"""Programs that run ahead of the kernel, with the answers that the model predicts."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from conformance import ops
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Divergence, only_observation
from conformance.client.tracefs import ROOT
from conformance.model.answers import Answer
from conformance.model.machine import Model
from conformance.ops import race, tasks
from tests.cases.variants import PROFILE, Attempt, Variant, client, honest
from tests.runner.liar import Lie, lies, tell

OPEN = ops.Open("p1", 3, "user_events_data", 0)
LOAD = ops.Load("p1", 4096, 4)
RACE = race.Race("p1", (race.Track("p1", (tasks.Clone("p1", "p2", 0),)),))


class Batches(ModelExecutor):
    """The model as a kernel, which counts its batches and may not read watched memory."""

    def __init__(self, *, blind: bool = False) -> None:
        super().__init__(Model(PROFILE))
        self.sizes: list[int] = []
        self._blind = blind

    def execute(
        self, operations: Sequence[ops.Operation], watches: Sequence[ops.Watch]
    ) -> list[ops.Observation]:
        self.sizes.append(len(operations))
        seen = super().execute(operations, watches)
        if self._blind:
            return [ops.Observation(each.value, each.errno, each.data) for each in seen]
        return seen


@pytest.mark.parametrize(
    ("operation", "allowed", "predicted"),
    [
        (OPEN, [Answer(0)], ops.Observation(0)),
        (OPEN, [Answer(-1, "ENOENT")], ops.Observation(-1, "ENOENT")),
        (OPEN, [Answer(None)], None),
        (OPEN, [Answer(0), Answer(-1, "ENODEV")], None),
        (OPEN, [Answer(0, counted=True)], None),
        (LOAD, [Answer(4, "", b"abcd")], ops.Observation(4, "", b"abcd")),
        (LOAD, [Answer(4)], None),
        # The memory of the child can be read once its process id is known.
        (RACE, [Answer(0, "", b"0")], None),
    ],
)
def test_only_an_answer_without_freedom_is_predicted(
    operation: ops.Operation, allowed: list[Answer], predicted: ops.Observation | None
) -> None:
    assert only_observation(operation, allowed) == predicted


def test_programs_are_the_same_in_fewer_batches(variants: list[Variant]) -> None:
    batches = steps = 0
    for variant in random.Random(6_12).sample(variants, 300):
        executor = Batches()
        outcome = Attempt(executor, ahead=True).run(variant)
        plain = honest(variant)
        assert (variant.id, outcome.raised) == (variant.id, plain.raised)
        assert outcome.lockstep.program == plain.lockstep.program
        assert outcome.lockstep.mismatches == []
        batches += len(executor.sizes)
        steps += len(plain.lockstep.steps)
    assert batches < steps / 5


def test_wrong_answers_are_found_at_their_steps(variants: list[Variant]) -> None:
    chosen = [each for each in variants if each.id.startswith(("unregister.", "status.used"))]
    misled = 0
    for variant in chosen:
        wrong: list[Lie] = list(lies(honest(variant).lockstep.steps))
        for lie in random.Random(variant.id).sample(wrong, min(8, len(wrong))):
            outcome = tell(variant, lie, ahead=True)
            assert outcome.lockstep.mismatches[0].number == lie.step, (variant.id, lie)
            if outcome.lockstep.misled:
                assert isinstance(outcome.raised, Divergence)
                misled += 1
    assert misled > len(chosen)


def test_a_batch_ends_where_the_model_leaves_the_answer_open() -> None:
    executor = Batches()
    ue = client(kernel=executor, ahead=True)
    event = ue.event()
    assert (event.errno, event.index, executor.sizes) == ("", 0, [])
    assert ue.tracefs.read(f"{ROOT}/events/user_events/{event.name}/id").ok
    assert len(executor.sizes) == 1
    assert event.write().errno == "EBADF"
    ue.lockstep.catch_up()
    assert executor.sizes[1:] == [2]


def test_memory_that_is_not_read_ends_the_run_ahead() -> None:
    executor = Batches(blind=True)
    ue = client(kernel=executor, ahead=True)
    event = ue.event()
    ue.lockstep.catch_up()
    before = len(executor.sizes)
    for _ in range(3):
        event.write()
    assert executor.sizes[before:] == [2, 2, 2]
