"""Properties of the model for generated programs."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import ops
from conformance.abi.profile import Profile, profile_for
from conformance.client import tracefs
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.user_events import UserEvents
from conformance.model.answers import Answer, differences
from conformance.model.errors import ModelError
from conformance.model.machine import Model
from conformance.model.state.world import Release
from conformance.ops import Observation, Operation
from tests.cases.variants import PROFILE, client
from tests.model.generated import STEADY, WATCHES, programs

# A release of every generation, and of those with most changes.
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
    """The observation of a kernel that gives this answer."""
    return Observation(answer.value or 0, answer.errno, answer.data, tuple(answer.memory.items()))


def answers(model: Model, program: Sequence[Operation]) -> list[list[Answer]]:
    """The allowed answers of each step, up to one that is not modelled."""
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
def test_the_model_answers_and_is_deterministic(program: list[Operation], profile: Profile) -> None:
    found = answers(Model(profile), program)
    assert found
    assert found == answers(Model(profile), program)


@STEADY
@given(all_programs, profiles)
def test_an_allowed_answer_is_foreseen_and_has_no_difference(
    program: list[Operation], profile: Profile
) -> None:
    model = Model(profile)
    for operation in program:
        try:
            foreseen = model.foresee(operation, WATCHES)
            allowed = model.step(operation, WATCHES)
        except ModelError:
            break
        assert foreseen == allowed
        seen = [observed(answer) for answer in allowed]
        assert [differences(*pair) for pair in zip(allowed, seen, strict=True)] == [[]] * len(seen)
        assert model.narrow(operation, seen[-1]) == []


class RandomKernel(ModelExecutor):
    """A kernel that does its pending work at random times."""

    def __init__(self, model: Model, settles: Sequence[bool]) -> None:
        super().__init__(model)
        self._settles = iter(settles)
        self._system = model

    def execute(
        self, operations: Sequence[Operation], watches: Sequence[ops.Watch]
    ) -> list[Observation]:
        """Perform operations, before some of them all pending work."""
        seen = []
        for operation in operations:
            if next(self._settles, False):
                self._system.settle()
            seen += super().execute([operation], watches)
        return seen


@settings(STEADY, max_examples=200)
@given(
    all_programs,
    profiles,
    # Late, at once, or at random times.
    st.one_of(st.just([]), st.just([True] * 99), st.lists(st.booleans(), min_size=60, max_size=60)),
)
def test_lockstep_accepts_work_at_any_time(
    program: list[Operation], profile: Profile, settles: list[bool]
) -> None:
    lockstep = Lockstep(Model(profile), RandomKernel(Model(profile), settles))
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
def test_settle_leaves_nothing_pending(program: list[Operation], profile: Profile) -> None:
    model = Model(profile)
    answers(model, program)
    model.settle()
    assert not model.world.pending
    once = pickle.dumps(model.world)
    model.settle()
    assert pickle.dumps(model.world) == once


@STEADY
@given(programs(), profiles)
def test_references_match_their_holders(program: list[Operation], profile: Profile) -> None:
    """References are held by descriptors, enablers, tracers and pending drops."""
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


def leave(ue: UserEvents, name: str) -> ops.ReadFile:
    """Leave an event whose removal is pending; the read that may show it."""
    data = ue.open_data()
    word = data.register(name).word
    data.close()
    ue.open_data().unregister(word)
    ue.tracefs.mode(tracefs.STATUS)
    return ops.ReadFile("root", tracefs.STATUS, ops.View.OWN, ue.prefix)


@pytest.mark.parametrize("eager", [False, True])
def test_an_excluded_state_does_not_return(eager: bool) -> None:
    """An event that was seen to be removed stays so; one that was seen may still be removed."""
    model = Model(PROFILE)
    ue = client(model, ModelExecutor(Model(PROFILE), eager=eager))
    status = leave(ue, ue.name())
    there, gone = f"{ue.name()}\n".encode(), b""
    assert promised(model, status) == {there, gone}
    seen = ue.tracefs.status()
    assert seen.encode() == (gone if eager else there)
    assert promised(model, status) == ({gone} if eager else {there, gone})


def promised(model: Model, operation: ops.Operation) -> set[bytes | None]:
    """The data that the model allows without a known bug."""
    return {answer.data for answer in model.foresee(operation) if not answer.bug}


@pytest.mark.parametrize(
    ("shown", "bugs"),
    [
        pytest.param("{0}\n", set(), id="there"),
        pytest.param("", set(), id="gone"),
        pytest.param("{1}\xf0\xd9\xde\n", {"status-reads-freed-event"}, id="freed"),
        pytest.param("{2}\n", {"status-reads-freed-event"}, id="cut off"),
        pytest.param("{1}\n", None, id="cut off elsewhere"),
        pytest.param("\n", None, id="empty"),
        pytest.param("{0} # Used by perf\n", None, id="other listeners"),
        pytest.param("{0}\n{0}\n", None, id="twice"),
    ],
)
def test_status_may_show_freed_memory_of_an_event_that_is_removed(
    shown: str, bugs: set[str] | None
) -> None:
    # The last reference is dropped at once: only the removal is pending.
    model = Model(profile_for("6.12.117,deferred_release=no"))
    ue = client(model)
    name = ue.name("long_enough")
    status = leave(ue, name)
    text = shown.format(name, name[:-1], name[:8]).encode("latin-1")
    model.step(status)
    found = model.narrow(status, ops.Observation(0, data=text))
    assert (None if found else model.bugs) == bugs
    assert {each.allowed for each in found} <= {f"{name}\n", ""}
