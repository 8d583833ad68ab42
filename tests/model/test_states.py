"""States of the model while work is pending.

Equal ones count once, and work that cannot change an answer does not multiply them.
"""

from __future__ import annotations

import mmap
import os

import pytest

from conformance import ops
from conformance.abi import uapi
from conformance.client import tracefs
from conformance.client.memory import discard
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.model.state.copies import copied, frozen
from tests.cases.variants import PROFILE, client
from tests.model.generated import READ_WRITE


@pytest.fixture
def model() -> Model:
    """The model of 6.12."""
    return Model(PROFILE)


@pytest.fixture
def ue(model: Model) -> UserEvents:
    """A client in lock step with the model as the kernel."""
    return client(model)


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


# Many events, raw operations

STRUCT, NAME, WORDS = 0x10000, 0x11000, 0x20000
EVENTS = 20


def performed(model: Model, operation: ops.Operation) -> set[str]:
    """Perform an operation; the allowed error names, "" for success."""
    allowed = model.step(operation)
    answer = allowed[0]
    model.narrow(operation, ops.Observation(answer.value or 0, answer.errno))
    return {each.errno for each in allowed}


@pytest.fixture
def started(model: Model) -> Model:
    """A process with some memory and two descriptors of the data file."""
    performed(model, ops.Spawn("p1"))
    for address, length in ((STRUCT, 0x2000), (WORDS, 0x1000)):
        performed(model, ops.Mmap("p1", address, length, READ_WRITE, mmap.MAP_PRIVATE))
    for slot in (3, 4):
        performed(model, ops.Open("p1", slot, tracefs.DATA, os.O_RDWR))
    return model


def register(model: Model, number: int, slot: int = 3) -> set[str]:
    """Register one of many events."""
    reg = {"size": 28, "enable_size": 4, "enable_addr": WORDS + 4 * number, "name_args": NAME}
    performed(model, ops.Store("p1", STRUCT, uapi.USER_REG.pack(reg)))
    performed(model, ops.Store("p1", NAME, b"e%d u32 a\0" % number))
    return performed(model, ops.Ioctl("p1", slot, uapi.DIAG_IOCSREG, STRUCT))


def unregister(model: Model, number: int, slot: int = 3) -> set[str]:
    """Unregister its bit: the kernel drops the reference later."""
    unreg = {"size": 16, "disable_addr": WORDS + 4 * number}
    performed(model, ops.Store("p1", STRUCT, uapi.USER_UNREG.pack(unreg)))
    return performed(model, ops.Ioctl("p1", slot, uapi.DIAG_IOCSUNREG, STRUCT))


def delete(model: Model, number: int) -> set[str]:
    """Delete an event by its name."""
    performed(model, ops.Store("p1", NAME, b"e%d\0" % number))
    return performed(model, ops.Ioctl("p1", 4, uapi.DIAG_IOCSDEL, NAME))


def test_many_events_are_unregistered_and_registered_again(started: Model) -> None:
    for number in range(EVENTS):
        assert register(started, number) == {""}
    for number in range(EVENTS):
        assert unregister(started, number) == {""}
    assert len(started.world.pending) == EVENTS
    for number in range(EVENTS):
        assert register(started, number) == {""}


def test_ids_that_may_be_reused_do_not_multiply_states(started: Model) -> None:
    register(started, 0, slot=4)
    unregister(started, 0, slot=4)
    performed(started, ops.Close("p1", 4))
    removed = copied(started.world)
    while removed.pending:
        removed.apply(removed.pending[0])
    started._worlds.append(removed)
    register(started, 1)
    assert len(started.states()) == 2
    started.settle()
    assert not started.is_ambiguous


def test_work_on_the_named_event_still_counts(started: Model) -> None:
    for number in range(EVENTS):
        register(started, number)
    for number in range(EVENTS):
        unregister(started, number)
    performed(started, ops.Close("p1", 3))
    # Its last reference is dropped at any time, and then the event is removed.
    assert delete(started, 5) == {"EBUSY", "ENOENT"}


def test_a_held_event_is_busy_whatever_is_pending(started: Model) -> None:
    register(started, 0)
    register(started, 1)
    unregister(started, 0)
    # The descriptor still refers to it.
    assert delete(started, 0) == {"EBUSY"}


def recorded(model: Model, number: int) -> None:
    """Write a record of an event that the second descriptor registers; its removal follows."""
    enable = f"{tracefs.ROOT}/events/user_events/e{number}/enable"
    assert register(model, number, slot=4) == {""}
    assert performed(model, ops.WriteFile("p1", enable, b"1", os.O_WRONLY)) == {""}
    performed(model, ops.Store("p1", STRUCT, bytes(8)))
    assert performed(model, ops.Write("p1", 4, STRUCT, 8)) == {""}
    assert performed(model, ops.WriteFile("p1", enable, b"0", os.O_WRONLY)) == {""}
    assert unregister(model, number, slot=4) == {""}
    performed(model, ops.Close("p1", 4))
    model.settle()


def test_the_id_of_a_record_is_known_without_pending_removals(started: Model) -> None:
    recorded(started, 0)
    shown = started.step(ops.ReadFile("p1", tracefs.TRACE, ops.View.RECORDS))
    assert b"Unknown type" in (shown[0].data or b"")


def test_a_removal_during_a_registration_leaves_the_ids_open(started: Model) -> None:
    register(started, 1)
    unregister(started, 1)
    performed(started, ops.Close("p1", 3))
    recorded(started, 0)
    assert performed(started, ops.Open("p1", 3, tracefs.DATA, os.O_RDWR)) == {""}
    register(started, 2)
    read = ops.ReadFile("p1", tracefs.TRACE, ops.View.RECORDS)
    shown = {each.data for each in started.step(read)}
    unknown, reused = sorted(shown, key=lambda text: b"e2" in (text or b""))
    assert b"Unknown type" in (unknown or b"")
    assert b"e2: a=0x0 (0)" in (reused or b"")
    started.narrow(read, ops.Observation(0, data=reused))
    assert {each.data for each in started.step(read)} == {reused}
