"""DIAG_IOCSDEL of the first version: the name of an unreferenced event."""

from __future__ import annotations

import os

from conformance.cases.case import surface, variants
from conformance.cases.support.rfc_v1 import bound
from conformance.client.addresses import KERNEL_HALF
from conformance.client.rfc_v1 import delete_at, register
from conformance.client.user_events import UserEvents

case = surface(
    "rfc",
    spec="trace_events_user.c:delete_user_event",
    doc="trace_events_user.c@rfc-v1, message of the patch: delete ioctls are issued to "
    "user_events_data",
    profiles="rfc-v1",
)


@case
def test_delete(ue: UserEvents) -> None:
    """An unreferenced event is deleted by its name, once."""
    bound(ue, ue.name() + ";u8\ta\t1\t0").close()
    data = ue.open_data()
    assert data.delete(ue.name()).value == 0
    assert ue.tracefs.definitions() == ""
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"
    assert data.delete(ue.name()).errno == "ENOENT"


@case
def test_delete_and_register(ue: UserEvents) -> None:
    """After deletion a name may have other fields."""
    bound(ue, ue.name() + ";u8\ta\t1\t0").close()
    data = ue.open_data()
    data.delete(ue.name())
    assert register(data, ue.name() + ";u16\tb\t2\t0").errno == ""
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u16 b\n"


@case
@variants(
    ("prefix", "ue:{}"),
    ("fields", "{};u8\ta\t1\t0"),
    ("semicolon", "{};"),
    ("system", "user_events/{}"),
    ("space", "{} "),
    ("never", "{}x"),
    ("empty", ""),
)
def test_delete_unknown(ue: UserEvents, name: str) -> None:
    """The argument is the exact name; anything else is ENOENT."""
    bound(ue, ue.name() + ";u8\ta\t1\t0").close()
    assert ue.open_data().delete(name.format(ue.name())).errno == "ENOENT"
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u8 a\n"


@case
@variants({"space": "{} u32 a", "colon": "{}:b", "slash": "{}/b"})
def test_delete_odd_name(ue: UserEvents, name: str) -> None:
    """An event of any name can be deleted by it."""
    bound(ue, name.format(ue.name())).close()
    assert ue.open_data().delete(ue.name()).errno == "ENOENT"
    assert ue.open_data().delete(name.format(ue.name())).value == 0


@case(doc="trace_events_user.c@rfc-v1: an event is deleted if it is no longer being used")
def test_delete_bound(ue: UserEvents) -> None:
    """An event bound to any descriptor, even the caller's, is in use: EBUSY."""
    data = bound(ue, ue.name())
    other = bound(ue, ue.name())
    assert data.delete(ue.name()).errno == "EBUSY"
    data.close()
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"
    other.close()
    assert ue.open_data().delete(ue.name()).value == 0


@case(
    spec="trace_events_user.c:user_events_release",
    doc="trace_events_user.c@rfc-v1: an event is deleted if it is no longer being used",
)
def test_delete_bound_in_child(ue: UserEvents) -> None:
    """Closing the last copy of a descriptor drops its reference to the event."""
    data = bound(ue, ue.name())
    child = ue.fork(ue.process)
    copy = data.dup()
    data.close()
    copy.close()
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"
    child.exit()
    assert ue.open_data().delete(ue.name()).value == 0


@case(doc="trace_events_user.c@rfc-v1: an event is deleted if it is no longer being used")
def test_delete_listened_to(ue: UserEvents) -> None:
    """An event enabled in ftrace is in use: EBUSY."""
    ue.tracefs.command(f"ue:{ue.name()}\n")
    ue.tracefs.enable(ue.name())
    assert ue.open_data().delete(ue.name()).errno == "EBUSY"
    ue.tracefs.disable(ue.name())
    assert ue.open_data().delete(ue.name()).value == 0


@case(
    spec="mm/util.c:strndup_user",
    doc="trace_events_user.c@rfc-v1: a description has at most 512 bytes",
)
@variants({"null": 0, "kernel-half": KERNEL_HALF, "unmapped": 0x1000_0000})
def test_delete_string(ue: UserEvents, address: int) -> None:
    """An unreadable name is EFAULT, one of 512 bytes is EINVAL."""
    data = bound(ue, ue.name())
    assert delete_at(data, address).errno == "EFAULT"
    assert data.delete("x" * 512).errno == "EINVAL"
    assert data.delete("x" * 511).errno == "ENOENT"


@case(doc="trace_events_user.c@rfc-v1: says nothing of rights")
def test_delete_by_anybody(ue: UserEvents) -> None:
    """A read-only descriptor is enough to delete events of others without any capability."""
    ue.tracefs.command(f"ue:{ue.name()}\n")
    data = ue.open_data(os.O_RDONLY)
    ue.process.setuid(1000)
    assert data.delete(ue.name()).value == 0
    assert ue.tracefs.definitions() == ""
