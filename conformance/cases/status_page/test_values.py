"""What the status page shows: the byte or bit of each event, and its tracers."""

from collections.abc import Mapping

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.status_page import length_of, map_page

SPEC = "user_event_group_create"
DOC = (
    "@v5.19 and @v6.1: Status: byte status_index until 6.0; since 6.1 bit "
    "status_bit % 8 of byte status_bit / 8, or the same bit of a little-endian long"
)
case = surface("status_page", SPEC, DOC, level="contract", profiles="5.18..6.3", isolation="global")


def stem(number: int) -> str:
    """The name of the event that is registered as number ``number``."""
    return f"n{number:02}"


def create(ue: UserEvents, count: int) -> None:
    """Create events 1 to ``count`` on a system without events."""
    ue.tracefs.command("".join(f"u:{stem(number)}\n" for number in range(1, count + 1)))


@case(doc="Status: the byte, since 6.1 the bit, is nonzero if anything is attached")
def test_empty(ue: UserEvents) -> None:
    """Without events the whole page is zero."""
    assert map_page(ue.process).load(0, length_of(ue.process)).data == bytes(
        ue.dated("two_status_pages", since=8192, before=4096)
    )


@case(spec="user_event_register_set, user_event_register_clear")
@variants(
    (1, {"byte-status": 1, "bit-status": 0}, {"byte-status": 1, "bit-status": 0x02}),
    (2, {"byte-status": 2, "bit-status": 0}, {"byte-status": 1, "bit-status": 0x04}),
    # The example of the documentation.
    (3, {"byte-status": 3, "bit-status": 0}, {"byte-status": 1, "bit-status": 0x08}),
    (7, {"byte-status": 7, "bit-status": 0}, {"byte-status": 1, "bit-status": 0x80}),
    (8, {"byte-status": 8, "bit-status": 1}, {"byte-status": 1, "bit-status": 0x01}),
    (15, {"byte-status": 15, "bit-status": 1}, {"byte-status": 1, "bit-status": 0x80}),
    (16, {"byte-status": 16, "bit-status": 2}, {"byte-status": 1, "bit-status": 0x01}),
    (33, {"byte-status": 33, "bit-status": 4}, {"byte-status": 1, "bit-status": 0x02}),
    (65, {"byte-status": 65, "bit-status": 8}, {"byte-status": 1, "bit-status": 0x02}),
)
def test_place(ue: UserEvents, place: int, at: Mapping[str, int], value: Mapping[str, int]) -> None:
    """An event enabled by ftrace has its byte at 1, or its bit set, and no other is set."""
    page = map_page(ue.process)
    create(ue, place)
    ue.tracefs.enable(stem(place))
    before, behind = bytes(at[ue.profile.generation]), bytes(128)
    expected = before + bytes([value[ue.profile.generation]]) + behind
    assert page.load(0, len(expected)).data == expected
    ue.tracefs.disable(stem(place))
    assert page.load(0, 256).data == bytes(256)


@case(spec="user_event_register_set, user_event_register_clear", profiles="6.1..6.3", tier="full")
@variants((3, 0), (63, 0), (64, 8), (70, 8))
def test_documented_check(ue: UserEvents, place: int, long: int) -> None:
    """The documented check by longs finds the same as the check by bytes."""
    page = map_page(ue.process)
    create(ue, place)
    for on in (1, 0):
        switch = ue.tracefs.enable if on else ue.tracefs.disable
        switch(stem(place))
        assert ue.process.load_number(page.address + long, 8) == on << place % 64
        assert page.shows(place) == on


@case(spec="update_reg_page_for", isolation="events")
@doc("Status: the status is updated in real time as tools attach and detach")
def test_follows(ue: UserEvents) -> None:
    """The byte of an event follows every change at once."""
    page = map_page(ue.process)
    place = ue.event().place
    shown = [page.shows(place)]
    for switch in (ue.tracefs.enable, ue.tracefs.disable) * 3:
        switch(ue.name())
        shown.append(page.shows(place))
    assert shown == [0, 1, 0, 1, 0, 1, 0]


@case(spec="user_event_register_set, user_event_register_clear")
def test_neighbours(ue: UserEvents) -> None:
    """Enabling and disabling an event does not affect the bytes of all other events."""
    page = map_page(ue.process)
    create(ue, 10)
    for number in (6, 7, 8, 9):
        ue.tracefs.enable(stem(number))
    ue.tracefs.disable(stem(7))
    content = {
        "byte-status": b"\0\0\0\0\0\0\1\0\1\1\0\0",
        "bit-status": b"\x40\x03\0\0\0\0\0\0\0\0\0\0",
    }
    assert page.load(0, 12).data == content[ue.profile.generation]
    ue.tracefs.disable(stem(8))
    content = {
        "byte-status": b"\0\0\0\0\0\0\1\0\0\1\0\0",
        "bit-status": b"\x40\x02\0\0\0\0\0\0\0\0\0\0",
    }
    assert page.load(0, 12).data == content[ue.profile.generation]


@case(spec="user_event_register_set, user_event_register_clear", tier="full")
def test_all_of_a_byte(ue: UserEvents) -> None:
    """Eight events that share a byte of the page since 6.1 are enabled and disabled one by one."""
    page = map_page(ue.process)
    create(ue, 15)
    seen = []
    for number in range(8, 16):
        ue.tracefs.enable(stem(number))
        seen.append(page.load(1, 1).data)
    for number in range(8, 16):
        ue.tracefs.disable(stem(number))
        seen.append(page.load(1, 1).data)
    shared = b"\x01\x03\x07\x0f\x1f\x3f\x7f\xff" + b"\xfe\xfc\xf8\xf0\xe0\xc0\x80\x00"
    # Until 6.0 byte 1 belongs to event 1 alone.
    expected = {"byte-status": bytes(16), "bit-status": shared}
    assert b"".join(each or b"?" for each in seen) == expected[ue.profile.generation]


@case(doc="Status: 0 is never returned, and is left to programs for errors")
def test_zero_stays(ue: UserEvents) -> None:
    """Index 0 belongs to no event and reads 0 while all events are enabled."""
    page = map_page(ue.process)
    create(ue, 9)
    for number in range(1, 10):
        ue.tracefs.enable(stem(number))
    content = {"byte-status": b"\0" + b"\1" * 9, "bit-status": b"\xfe\x03" + bytes(8)}
    assert page.load(0, 10).data == content[ue.profile.generation]
    assert page.shows(0) == 0
