"""Pending work that cannot change an answer does not multiply the states of the model."""

from __future__ import annotations

import mmap
import os

from conformance import ops
from conformance.abi import uapi
from conformance.abi.profile import profile_for
from conformance.model.machine import Model

DATA = "/sys/kernel/tracing/user_events_data"
TRACE = "/sys/kernel/tracing/trace"
STRUCT, NAME, WORDS = 0x10000, 0x11000, 0x20000
READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
EVENTS = 20


def performed(model: Model, operation: ops.Operation) -> set[str]:
    """Perform an operation; the allowed error names, "" for success."""
    allowed = model.step(operation)
    answer = allowed[0]
    model.narrow(operation, ops.Observation(answer.value or 0, answer.errno))
    return {each.errno for each in allowed}


def started() -> Model:
    """A process with some memory and two descriptors of the data file."""
    model = Model(profile_for("6.12.117"))
    performed(model, ops.Spawn("p1"))
    for address, length in ((STRUCT, 0x2000), (WORDS, 0x1000)):
        performed(model, ops.Mmap("p1", address, length, READ_WRITE, mmap.MAP_PRIVATE))
    for slot in (3, 4):
        performed(model, ops.Open("p1", slot, DATA, os.O_RDWR))
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


def test_many_events_are_unregistered_and_registered_again() -> None:
    model = started()
    for number in range(EVENTS):
        assert register(model, number) == {""}
    for number in range(EVENTS):
        assert unregister(model, number) == {""}
    assert len(model.world.pending) == EVENTS
    for number in range(EVENTS):
        assert register(model, number) == {""}


def test_work_on_the_named_event_still_counts() -> None:
    model = started()
    for number in range(EVENTS):
        register(model, number)
    for number in range(EVENTS):
        unregister(model, number)
    performed(model, ops.Close("p1", 3))
    # Its last reference is dropped at any time, and then the event is removed.
    assert delete(model, 5) == {"EBUSY", "ENOENT"}


def test_a_held_event_is_busy_whatever_is_pending() -> None:
    model = started()
    register(model, 0)
    register(model, 1)
    unregister(model, 0)
    # The descriptor still refers to it.
    assert delete(model, 0) == {"EBUSY"}


def recorded(model: Model, number: int) -> None:
    """Write a record of an event that the second descriptor registers; its removal follows."""
    enable = f"/sys/kernel/tracing/events/user_events/e{number}/enable"
    assert register(model, number, slot=4) == {""}
    assert performed(model, ops.WriteFile("p1", enable, b"1", os.O_WRONLY)) == {""}
    performed(model, ops.Store("p1", STRUCT, bytes(8)))
    assert performed(model, ops.Write("p1", 4, STRUCT, 8)) == {""}
    assert performed(model, ops.WriteFile("p1", enable, b"0", os.O_WRONLY)) == {""}
    assert unregister(model, number, slot=4) == {""}
    performed(model, ops.Close("p1", 4))
    model.settle()


def test_the_id_of_a_record_is_known_without_pending_removals() -> None:
    model = started()
    recorded(model, 0)
    shown = model.step(ops.ReadFile("p1", TRACE, ops.View.RECORDS))
    assert b"Unknown type" in (shown[0].data or b"")


def test_a_removal_during_a_registration_leaves_the_ids_open() -> None:
    model = started()
    register(model, 1)
    unregister(model, 1)
    performed(model, ops.Close("p1", 3))
    recorded(model, 0)
    assert performed(model, ops.Open("p1", 3, DATA, os.O_RDWR)) == {""}
    register(model, 2)
    read = ops.ReadFile("p1", TRACE, ops.View.RECORDS)
    shown = {each.data for each in model.step(read)}
    unknown, reused = sorted(shown, key=lambda text: b"e2" in (text or b""))
    assert b"Unknown type" in (unknown or b"")
    assert b"e2: a=0x0 (0)" in (reused or b"")
    model.narrow(read, ops.Observation(0, data=reused))
    assert {each.data for each in model.step(read)} == {reused}
