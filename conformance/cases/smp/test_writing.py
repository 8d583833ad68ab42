"""Two CPUs: writers, with concurrent enabling, registering and closing."""

from __future__ import annotations

import struct

from conformance.cases.case import surface, variants
from conformance.cases.support.smp import Racers, enable_file
from conformance.client.races import race, track
from conformance.client.user_events import UserEvents
from conformance.ops import View
from conformance.ops.tasks import THREAD

case = surface(
    "smp",
    spec="trace_events_user.c",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data",
    tier="full",
    facilities="smp",
)

ONE = struct.pack("<I", 1)
TWO = struct.pack("<I", 2)


@case(spec="user_event_ftrace", doc="what is written is recorded", isolation="global")
@variants({"threads": THREAD, "processes": 0})
def test_no_record_is_lost(ue: UserEvents, flags: int) -> None:
    """Of concurrent writes on two CPUs each is recorded completely."""
    both = Racers(ue, flags)
    mine, its = both.open_data()
    mine.register(f"{ue.name()} u32 v")
    its.register(f"{ue.name()} u32 v")
    ue.tracefs.enable(ue.name())
    told = race(
        both.left,
        track(both.left, both.prepared_left.write(mine, 0, ONE), passes=400),
        track(both.right, both.prepared_right.write(its, 0, TWO), passes=300),
    )
    assert told == [[{"8": 400}], [{"8": 300}]]
    counted = [_entries(ue, cpu) for cpu in (0, 1)]
    assert counted == ["entries: 400", "entries: 300"]
    assert ue.tracefs.distinct_records() == [
        ue.line("v=0x1 (1)", dump="01 00 00 00"),
        ue.line("v=0x2 (2)", dump="02 00 00 00"),
    ]


def _entries(ue: UserEvents, cpu: int) -> str:
    path = ue.tracefs.path(f"per_cpu/cpu{cpu}/stats")
    return ue.tracefs.read(path, View.COUNTS).text.splitlines()[0]


@case(
    spec="user_events_write_core",
    doc="EBADF while the event is disabled (since 6.5), and no other error",
)
@variants({"threads": THREAD, "processes": 0})
def test_written_while_switched(ue: UserEvents, flags: int) -> None:
    """A write during switching is recorded completely or not at all."""
    both = Racers(ue, flags)
    data = both.left.open_data()
    data.register(f"{ue.name()} u32 v")
    ue.tracefs.enable(ue.name())
    on, off = both.prepared_right.switch(enable_file(ue))
    writing = both.prepared_left.write(data, 0, ONE)
    (written,), switched = race(
        both.left, track(both.left, writing, passes=300), track(both.right, off, on, passes=10)
    )
    assert switched == [{"1": 10}, {"1": 10}]
    refused = ue.dated("ebadf_when_disabled", since={"EBADF"}, before=set())
    assert set(written) <= {"8"} | refused
    assert data.write_event(0, ONE).value == 8
    assert ue.tracefs.distinct_records() == [ue.line("v=0x1 (1)", dump="01 00 00 00")]


@case(
    spec="user_events_ref_add: the old array is freed after a grace period",
    doc="by the index that the registration gave",
)
def test_written_while_registered(ue: UserEvents) -> None:
    """An index stays valid while the descriptor registers more events."""
    both = Racers(ue)
    data = both.left.open_data()
    data.register(f"{ue.name()} u32 v")
    ue.tracefs.enable(ue.name())
    more = [both.prepared_right.register(data, ue.name(f"more{n}")) for n in range(8)]
    told = race(
        both.left,
        track(both.left, both.prepared_left.write(data, 0, ONE), passes=500),
        track(both.right, *more),
    )
    assert told == [[{"8": 500}], [{"0": 1}] * 8]
    assert ue.tracefs.distinct_records() == [ue.line("v=0x1 (1)", dump="01 00 00 00")]


@case(
    spec="user_events_write_core; user_events_release", doc="through a descriptor, while it is open"
)
def test_written_while_closed(ue: UserEvents) -> None:
    """Writing through a descriptor that another thread closes fails with EBADF."""
    both = Racers(ue)
    data = both.left.open_data()
    data.register(f"{ue.name()} u32 v")
    ue.tracefs.enable(ue.name())
    (written,), closed = race(
        both.left,
        track(both.left, both.prepared_left.write(data, 0, ONE), passes=300),
        track(both.right, both.prepared_right.close(data)),
    )
    assert closed == [{"0": 1}]
    assert set(written) <= {"8", "EBADF"}
    assert data.write_event(0, ONE).errno == "EBADF"
