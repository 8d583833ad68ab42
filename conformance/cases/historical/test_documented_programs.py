"""The programs of the founding documents of user_events, call by call.

A program checks its status page, since 6.4 its enable word.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from conformance.cases.case import surface
from conformance.cases.support.status_page import map_page
from conformance.client.data_file import Registration
from conformance.client.user_events import UserEvents

case = surface(
    "documented",
    spec="trace_events_user.c:user_events_write_core",
    doc="Documentation/trace/user_events.rst@v5.18 and its proposal: its program writes the "
    "status index where the write index belongs",
    isolation="global",
)


def asked(ue: UserEvents, opened: int) -> Callable[[Registration], int]:
    """How a program checks whether its event is enabled; the page is mapped first, and its file
    closed.
    """
    if not ue.profile.has("status_page"):
        return lambda event: event.word.value
    page = map_page(ue.process, opened=opened)
    page.close()
    return lambda event: page.shows(event.place)


@case(
    doc="trace_events_user.c@v5.18, message of its first commit: map the page, register `test`, "
    "look at its byte, then writev index and payload"
)
def test_typical_use(ue: UserEvents) -> None:
    """The typical program finds its event disabled, then enabled, and its writes are recorded."""
    ask = asked(ue, os.O_RDWR)
    data = ue.open_data()
    event = data.register("test")
    assert event.index == 0
    if ue.profile.has("status_page"):
        assert event.place == 1
    assert ask(event) == 0
    ue.tracefs.enable("test")
    assert ask(event) == 1
    assert data.writev([b"\0\0\0\0", b"payload"]).value == 11
    line = ue.dated("remote_enable", since="test:No fields found", before="70 61 79 6c 6f 61 64")
    assert ue.tracefs.records("test") == [line]
    ue.tracefs.disable("test")
    assert ask(event) == 0


@case(spec="user_event_find by index", profiles="5.18..6.3")
def test_sample_program(ue: UserEvents) -> None:
    """The proposed sample program records nothing: it writes its status index, ENOENT."""
    ask = asked(ue, os.O_RDONLY)
    data = ue.open_data()
    event = data.register("test u32 count")
    assert (event.place, event.index) == (1, 0)
    assert ask(event) == 0
    ue.tracefs.enable("test")
    assert ask(event) == 1
    # The program does not check the result, and continues counting.
    assert data.writev([b"\1\0\0\0", b"\0\0\0\0"]).errno == "ENOENT"
    assert data.writev([b"\1\0\0\0", b"\1\0\0\0"]).errno == "ENOENT"
    assert ue.tracefs.records("test") == []


@case(
    spec="user_event_find by index", profiles="5.18..6.3", needs="payload_size_checked", tier="full"
)
def test_sample_program_of_two(ue: UserEvents) -> None:
    """A status index used as a write index may select another event."""
    data = ue.open_data()
    first = data.register("test u32 count")
    second = data.register("other u64 sum")
    assert (first.place, second.index) == (1, 1)
    ue.tracefs.enable("test")
    ue.tracefs.enable("other")
    assert data.writev([b"\1\0\0\0", b"\0\0\0\0"]).errno == "EINVAL"
    assert data.writev([b"\1\0\0\0", b"\0\0\0\0\1\0\0\0"]).value == 12
    assert ue.tracefs.records("other") == ["00 00 00 00 01 00 00 00"]


@case(
    doc="Documentation/trace/user_events.rst@v5.18 and its proposal: write_index stands first, "
    "then the payload; the program counts what it wrote"
)
def test_sample_program_mended(ue: UserEvents) -> None:
    """With the write index the sample program records its counter while the event is enabled."""
    ask = asked(ue, os.O_RDONLY)
    data = ue.open_data()
    event = data.register("test u32 count")
    count = 0
    answers = []
    for switch in (ue.tracefs.enable, ue.tracefs.enable, ue.tracefs.disable, ue.tracefs.enable):
        switch("test")
        answers.append(ask(event))
        if answers[-1]:
            assert data.writev([b"\0\0\0\0", bytes([count, 0, 0, 0])]).value == 8
            count += 1
    assert answers == [1, 1, 0, 1]
    assert ue.tracefs.records("test") == ue.dated(
        "remote_enable",
        since=["test: count=0x0 (0)", "test: count=0x1 (1)", "test: count=0x2 (2)"],
        before=["00 00 00 00", "01 00 00 00", "02 00 00 00"],
    )
