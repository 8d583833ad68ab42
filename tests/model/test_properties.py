"""Properties of the model that no list of cases can show."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.abi.profile import Profile, profile_for
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.user_events import UserEvents
from conformance.model.answers import Answer, differences
from conformance.model.errors import ModelError
from conformance.model.machine import Model
from conformance.model.state.world import Release
from conformance.ops import syscalls as op
from conformance.ops.syscalls import Observation, Operation
from tests.cases.variants import PROFILE
from tests.model.generated import STEADY, WATCHES, programs

# A release of every generation and of the years in which most changed.
GENERATIONS = (
    "rfc-v1",
    "first-commit",
    "merge-window",
    "byte-status",
    "6.1",
    "6.3.2",
    "6.4",
    "6.5",
    "6.7",
    "6.9",
    "6.12",
    "7.3",
)
profiles = st.sampled_from([PROFILE, *(profile_for(abi) for abi in GENERATIONS)])
all_programs = programs(hostility=2)


def observed(answer: Answer) -> Observation:
    """The observation of a kernel that gives an allowed answer."""
    return Observation(answer.value or 0, answer.errno, answer.data, tuple(answer.memory.items()))


def answers(model: Model, program: Sequence[Operation]) -> list[list[Answer]]:
    """What a model allows at each step, up to one that is not modelled."""
    allowed = []
    for operation in program:
        try:
            found = model.step(operation, WATCHES)
        except ModelError:
            break
        allowed.append(found)
        model.narrow(operation, observed(found[0]))
    return allowed


@STEADY
@given(all_programs, profiles)
def test_every_operation_is_answered_or_not_modelled(
    program: list[Operation], profile: Profile
) -> None:
    assert answers(Model(profile), program)


@STEADY
@given(all_programs, profiles)
def test_the_same_program_is_answered_the_same_way(
    program: list[Operation], profile: Profile
) -> None:
    assert answers(Model(profile), program) == answers(Model(profile), program)


@STEADY
@given(all_programs, profiles)
def test_an_allowed_answer_is_never_a_difference(
    program: list[Operation], profile: Profile
) -> None:
    model = Model(profile)
    for operation in program:
        try:
            allowed = model.step(operation, WATCHES)
        except ModelError:
            break
        seen = [observed(answer) for answer in allowed]
        assert [differences(*pair) for pair in zip(allowed, seen, strict=True)] == [[]] * len(seen)
        assert model.narrow(operation, seen[-1]) == []


@STEADY
@given(all_programs, profiles, st.sampled_from(["late", "at once"]))
def test_lock_step_agrees_with_a_kernel_however_late_it_is(
    program: list[Operation], profile: Profile, how: str
) -> None:
    agree(program, profile, ModelExecutor(Model(profile), eager=how == "at once"))


class Moody(ModelExecutor):
    """A kernel whose pending work happens whenever the dice say so."""

    def __init__(self, model: Model, dice: Sequence[bool]) -> None:
        super().__init__(model)
        self._moods = iter(dice)
        self._system = model

    def execute(
        self, operations: Sequence[Operation], watches: Sequence[op.Watch]
    ) -> list[Observation]:
        """Perform operations, some after everything pending was done."""
        seen = []
        for operation in operations:
            if next(self._moods, False):
                self._system.settle()
            seen += super().execute([operation], watches)
        return seen


@STEADY
@given(programs(), profiles, st.lists(st.booleans(), min_size=60, max_size=60))
def test_lock_step_agrees_with_a_kernel_that_works_at_any_moment(
    program: list[Operation], profile: Profile, dice: list[bool]
) -> None:
    agree(program, profile, Moody(Model(profile), dice))


def agree(program: Sequence[Operation], profile: Profile, kernel: ModelExecutor) -> None:
    """Run a program in lock step, up to what is not modelled; nothing may differ."""
    lockstep = Lockstep(Model(profile), kernel)
    for watch in WATCHES:
        lockstep.watch(watch.actor, watch.address, watch.length)
    for operation in program:
        try:
            lockstep.run(operation)
        except ModelError:
            break
    assert lockstep.mismatches == []


@STEADY
@given(programs(), profiles)
def test_looking_ahead_changes_nothing(program: list[Operation], profile: Profile) -> None:
    model = Model(profile)
    for operation in program:
        try:
            foreseen = model.foresee(operation, WATCHES)
            allowed = model.step(operation, WATCHES)
        except ModelError:
            break
        assert foreseen == allowed
        model.narrow(operation, observed(allowed[0]))


@STEADY
@given(programs(), profiles)
def test_settling_leaves_nothing_pending(program: list[Operation], profile: Profile) -> None:
    model = Model(profile)
    answers(model, program)
    model.settle()
    assert not model.world.pending
    once = pickle.dumps(model.world)
    model.settle()
    assert pickle.dumps(model.world) == once


@STEADY
@given(programs(), profiles)
def test_references_are_counted(program: list[Operation], profile: Profile) -> None:
    """An event's references are its descriptors, words, tracers and pending drops."""
    model = Model(profile)
    answers(model, program)
    world = model.world
    files = {file for process in world.processes.values() for file in process.slots.values()}
    enablers = [e for process in world.processes.values() for e in process.enablers or []]
    dropping = [each.event for each in world.pending if isinstance(each, Release)]
    for event in world.table.events:
        held = sum(event.serial in file.events for file in files)
        held += sum(enabler.event == event.serial for enabler in enablers)
        held += len(event.tracers) + dropping.count(event.serial)
        assert event.references == held


@pytest.mark.parametrize("eager", [False, True])
def test_a_state_that_an_observation_rules_out_does_not_come_back(eager: bool) -> None:
    """Once an event was seen to be gone it is gone; once seen to be there it may still go."""
    model = Model(PROFILE)
    kernel = ModelExecutor(Model(PROFILE), eager=eager)
    lockstep = Lockstep(model, kernel)
    ue = UserEvents(lockstep)
    data = ue.open_data()
    word = data.register(ue.name()).word
    data.close()
    ue.open_data().unregister(word)
    look = op.ReadFile("root", "/sys/kernel/tracing/user_events_status", op.View.OWN, ue.prefix)
    ue.tracefs.mode("/sys/kernel/tracing/user_events_status")
    there, gone = f"{ue.name()}\n".encode(), b""
    assert {answer.data for answer in model.foresee(look)} == {there, gone}
    seen = ue.tracefs.status()
    assert seen.encode() == (gone if eager else there)
    assert {answer.data for answer in model.foresee(look)} == ({gone} if eager else {there, gone})
