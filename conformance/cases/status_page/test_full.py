"""The status page when all its bits are in use."""

from collections.abc import Iterable

from conformance import ops
from conformance.cases.case import UserEvents, doc, surface
from conformance.cases.support.status_page import map_page

case = surface(
    "status_page", level="behaviour", profiles="5.18..6.3", tier="full", isolation="global"
)

# Lines of dynamic_events in one write(2), and ioctls in one batch.
_BATCH = 500
_DELETE = 0x40082A01


def create(ue: UserEvents, numbers: range) -> None:
    """Create events with numbers as names, in this order.

    Names with a slash get no directory below events/, and creating directories is most of the work.
    """
    for start in range(0, len(numbers), _BATCH):
        lines = "".join(f"u:/{number}\n" for number in numbers[start : start + _BATCH])
        ue.tracefs.command(lines)


def delete(ue: UserEvents, numbers: Iterable[int]) -> None:
    """Delete them, newest first: those are found without a search."""
    process, data = ue.process, ue.open_data()
    names = [f"/{number}".encode().ljust(8, b"\0") for number in numbers]
    room = process.map(_BATCH * 8 // 4096 + 1)
    for start in range(0, len(names), _BATCH):
        batch = names[start : start + _BATCH]
        process.queue(ops.Store(process.actor, room, b"".join(batch)))
        places = range(room, room + 8 * len(batch), 8)
        process.run(*(ops.Ioctl(process.actor, data.slot, _DELETE, place) for place in places))


@case(spec="user_event_parse: find_first_zero_bit")
@doc("@v5.19 and @v6.1: Status:")
@doc("the text ends in Max, 4096 until 6.0 and 32768 since 6.1; silent about the error beyond")
def test_no_index_left(ue: UserEvents) -> None:
    """All numbers below the maximum can be used; one more event is EMFILE, its fields unread."""
    last = {"byte-status": 4095, "bit-status": 32767}[ue.profile.generation]
    total = {"byte-status": 4096, "bit-status": 32768}[ue.profile.generation]
    full = ue.dated("two_status_pages", since="", before="EMFILE")
    unread = ue.dated("two_status_pages", since="EINVAL", before="EMFILE")
    page = map_page(ue.process)
    data = ue.open_data()
    assert data.register("first").place == 1
    create(ue, range(2, last))
    assert data.register("last u32 a").place == last
    ue.tracefs.enable("last")
    # The last byte of the page, or its last bit.
    ends = {"byte-status": b"\0\x01", "bit-status": b"\0\x80"}
    assert page.load(4094, 2).data == ends[ue.profile.generation]
    counts = ue.tracefs.status(whole=True).partition("\n\n")[2]
    assert counts.startswith(f"Active: {last}\nBusy: 1\nMax: ")
    most = ue.dated("two_status_pages", since=2 * total, before=total)
    assert counts.endswith(f"\nMax: {most}\n")
    # An invalid field is not parsed; an unreadable string is detected.
    assert (data.register("more long a").errno, data.register("more").errno) == (unread, full)
    assert ue.tracefs.command("u:another\n").errno == full
    assert data.register("x", name_args=0).errno == "EFAULT"
    assert data.register("x" * 512).errno == "EINVAL"
    # An existing event needs no number.
    assert (data.register("last long a").place, ue.open_data().register("first").place) == (last, 1)
    assert ue.tracefs.command("u:last u8 b\n").errno == ""
    # A freed number is used by the next event.
    delete(ue, [17])
    assert data.register("next").place == 17
    ue.tracefs.disable("last")
    delete(ue, reversed([*range(2, 17), *range(18, last)]))
