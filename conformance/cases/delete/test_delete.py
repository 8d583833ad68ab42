"""DIAG_IOCSDEL of an unreferenced event: what is removed and what stays."""

from __future__ import annotations

import os

from conformance.cases.case import surface, variants
from conformance.cases.support.registration import abandoned
from conformance.client.user_events import UserEvents

case = surface(
    "delete",
    spec="trace_events_user.c:delete_user_event",
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: succeeds only when neither user "
    "nor kernel space holds a reference",
    needs="lasting_events",
)


@case(tier="full")
@variants({"read-write": os.O_RDWR, "read-only": os.O_RDONLY, "write-only": os.O_WRONLY})
def test_removes(ue: UserEvents, flags: int) -> None:
    """An unreferenced event is deleted at once, whatever the open mode of the descriptor."""
    abandoned(ue, f"{ue.name()} u32 a")
    data = ue.open_data(flags)
    assert data.delete(ue.name(), eventually=True).value == 0
    assert ue.tracefs.status() == ""
    assert ue.tracefs.dynamic_events() == ""
    assert data.delete(ue.name()).errno == "ENOENT"


@case(spec="trace_events_user.c:destroy_user_event")
def test_removes_directory(ue: UserEvents) -> None:
    """Deleting an event removes its directory below events/user_events."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
    assert ue.open_data().delete(ue.name()).value == 0
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"


@case
def test_name_is_free(ue: UserEvents) -> None:
    """A deleted name can be registered with other fields."""
    ue.tracefs.command(f"u:{ue.name()} u32 a")
    taken = ue.dated("arguments_matched", since="EADDRINUSE", before="")
    assert ue.tracefs.command(f"u:{ue.name()} u64 b").errno == taken
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\n"
    data = ue.open_data()
    assert data.delete(ue.name()).value == 0
    assert data.register(f"{ue.name()} u64 b").index == 0
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u64 b\n"


@case(
    doc="Documentation/trace/user_events.rst@v6.12: Deleting: the argument is a string, the name "
    "of the event"
)
def test_only_the_name(ue: UserEvents) -> None:
    """Events whose names share a prefix with the deleted name stay."""
    for stem in ("e", "ee", "eee"):
        ue.tracefs.command(f"u:{ue.name(stem)}")
    assert ue.open_data().delete(ue.name("ee")).value == 0
    assert ue.tracefs.dynamic_events() == f"u:{ue.name('e')}\nu:{ue.name('eee')}\n"
