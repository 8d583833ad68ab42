"""DIAG_IOCSDEL of the first version: a name, of an event that nobody uses."""

from __future__ import annotations

import os

from conformance.cases.case import surface, variants
from conformance.cases.support.rfc_v1 import KERNEL_HALF, bound
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
    """An event that nobody has any more is deleted by its name, once."""
    bound(ue, ue.name() + ";u8\ta\t1\t0").close()
    data = ue.open_data()
    assert data.delete(ue.name()).value == 0
    assert ue.tracefs.definitions() == ""
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"
    assert data.delete(ue.name()).errno == "ENOENT"


@case
def test_delete_and_register(ue: UserEvents) -> None:
    """Once it is deleted a name may have other fields."""
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
    """The argument is a name and nothing else, or there is no such event: ENOENT."""
    bound(ue, ue.name() + ";u8\ta\t1\t0").close()
    assert ue.open_data().delete(name.format(ue.name())).errno == "ENOENT"
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u8 a\n"


@case
@variants({"space": "{} u32 a", "colon": "{}:b", "slash": "{}/b"})
def test_delete_odd_name(ue: UserEvents, name: str) -> None:
    """An event of any name is deleted by it."""
    bound(ue, name.format(ue.name())).close()
    assert ue.open_data().delete(ue.name()).errno == "ENOENT"
    assert ue.open_data().delete(name.format(ue.name())).value == 0


@case(doc="trace_events_user.c@rfc-v1: an event is deleted if it is no longer being used")
def test_delete_bound(ue: UserEvents) -> None:
    """An event that any descriptor stands for, the caller's too, is in use: EBUSY."""
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
    """The last copy of a descriptor that is closed gives the event back."""
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
    """An event that ftrace listens to is in use, whoever else has it: EBUSY."""
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
    """A name that cannot be read is EFAULT, one of 512 bytes is EINVAL."""
    data = bound(ue, ue.name())
    assert delete_at(data, address).errno == "EFAULT"
    assert data.delete("x" * 512).errno == "EINVAL"
    assert data.delete("x" * 511).errno == "ENOENT"


@case(doc="trace_events_user.c@rfc-v1: says nothing of rights")
def test_delete_by_anybody(ue: UserEvents) -> None:
    """Who has a descriptor, be it to read, deletes events of others without any capability."""
    ue.tracefs.command(f"ue:{ue.name()}\n")
    data = ue.open_data(os.O_RDONLY)
    ue.process.setuid(1000)
    assert data.delete(ue.name()).value == 0
    assert ue.tracefs.definitions() == ""
