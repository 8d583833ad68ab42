"""Stores to the status page, which these kernels grant: who sees and who believes them.

No document says that a program may write the page, nor that it may not; this is what the
kernels were seen to do.  Every case puts back the zeros it found.
"""

import os

from conformance.cases.case import UserEvents, surface, variants
from conformance.cases.support.status_page import READ_WRITE, map_page, writable
from conformance.client.perf import open_perf

SPEC = "user_seq_show"
DOC = "@v5.19 and @v6.1: Status: programs read the page; silent about stores to it"
case = surface(
    "status_page", SPEC, DOC, level="behaviour", profiles="5.18..6.3", isolation="global"
)


@case(spec="mm/memory.c:wp_pfn_shared, wp_page_reuse", level="detail")
@variants({"mapped-writable": True, "made-writable": False})
def test_store_is_shared(ue: UserEvents, asked: bool) -> None:
    """A store through a writable descriptor is seen in every mapping of every process."""
    page = map_page(ue.process, opened=os.O_RDWR, protection=READ_WRITE if asked else 1)
    if not asked:
        page.protect(READ_WRITE)
    readers = [map_page(ue.process), map_page(ue.new_process())]
    assert page.store(4000, b"\x5a\xa5").value == 2
    assert [reader.load(4000, 2).data for reader in readers] == [b"\x5a\xa5"] * 2
    page.store(4000, bytes(2))
    assert [reader.load(4000, 2).data for reader in readers] == [b"\0\0"] * 2


@case(spec="mm/memory.c:wp_pfn_shared, wp_page_reuse", level="detail", tier="full")
def test_store_of_a_child(ue: UserEvents) -> None:
    """A forked child can store too, and the store outlives it."""
    page = writable(ue.process)
    process = ue.fork(ue.process)
    assert page.of(process).store(4000, b"\x77").value == 1
    process.exit()
    assert page.load(4000).data == b"\x77"
    page.store(4000, b"\0")


@case(spec="mm/memory.c:wp_pfn_shared, wp_page_reuse", level="detail", tier="full")
def test_store_outlives_everybody(ue: UserEvents) -> None:
    """A store is still there for a process that maps the page after the writer has exited."""
    writer = ue.new_process()
    writable(writer).store(4000, b"\x77")
    writer.exit()
    page = writable(ue.process)
    assert page.load(4000).data == b"\x77"
    page.store(4000, b"\0")


@case(spec="update_reg_page_for")
@variants(
    # What was stored; the page with the event enabled and then disabled, in bytes and in bits.
    ("ones", b"\xff\xff\xff", (b"\xff\1\xff", b"\xff\0\xff"), (b"\xff\xff\xff", b"\xfd\xff\xff")),
    ("zeros", b"\0\0\0", (b"\0\x01\0", b"\0\0\0"), (b"\x02\0\0", b"\0\0\0")),
    (
        "pattern",
        b"\xa5\xa5\xa5",
        (b"\xa5\x01\xa5", b"\xa5\x00\xa5"),
        (b"\xa7\xa5\xa5", b"\xa5\xa5\xa5"),
    ),
)
def test_own_place_only(
    ue: UserEvents, stored: bytes, in_bytes: tuple[bytes, bytes], in_bits: tuple[bytes, bytes]
) -> None:
    """An update by the kernel overwrites the byte of its event and nothing else."""
    page = writable(ue.process)
    enabled, disabled = {"byte-status": in_bytes, "bit-status": in_bits}[ue.profile.generation]
    event = ue.event()
    page.store(0, stored)
    event.enable()
    assert page.load(0, 3).data == enabled
    event.disable()
    assert page.load(0, 3).data == disabled
    page.store(0, bytes(3))


@case(spec="user_event_reg")
def test_updated_on_change(ue: UserEvents) -> None:
    """An overwritten byte stays wrong until a tracer attaches or detaches."""
    page = writable(ue.process)
    event = ue.event(enabled=True)
    page.store(0, bytes(2))
    # It is enabled already: no tracer attaches.
    event.enable()
    assert page.shows(event.place) == 0
    event.disable()
    assert page.shows(event.place) == 0
    event.enable()
    assert page.shows(event.place) == 1


@case(spec="user_event_reg", needs="perf_sink", facilities="perf")
def test_updated_by_each_tracer(ue: UserEvents) -> None:
    """An overwritten byte is corrected when a second tracer attaches, and when one detaches."""
    page = writable(ue.process)
    event = ue.event(enabled=True)
    page.store(0, bytes(2))
    perf = open_perf(ue.process, ue.name())
    assert page.shows(event.place) == {"byte-status": 3, "bit-status": 1}[ue.profile.generation]
    page.store(0, bytes(2))
    perf.close()
    assert page.shows(event.place) == 1


@case(spec="user_events_write_core")
def test_recorded_all_the_same(ue: UserEvents) -> None:
    """A write is recorded while ftrace has the event enabled, though the page denies it."""
    page = writable(ue.process)
    event = ue.event("u32 a", enabled=True)
    page.store(0, bytes(2))
    assert event.write(b"\x01\x02\x03\x04").value == 8
    assert ue.tracefs.records() == ["01 02 03 04"]
    event.disable()


@case(spec="user_events_write_core", tier="full")
def test_nothing_recorded_all_the_same(ue: UserEvents) -> None:
    """A page that claims a tracer does not enable an event."""
    page = writable(ue.process)
    event = ue.event("u32 a")
    page.store(0, b"\x03\x01")
    assert page.shows(event.place) == 1
    written = event.write(b"\x01\x02\x03\x04")
    assert written.value == ue.dated("ebadf_when_disabled", since=-1, before=8)
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
    assert ue.tracefs.records() == []
    page.store(0, bytes(2))


@case(spec="destroy_user_event")
def test_deleted_all_the_same(ue: UserEvents) -> None:
    """An event that is in use only by the page can be deleted, which clears its byte."""
    page = writable(ue.process)
    ue.event().data.close()
    page.store(0, b"\xff\xff\xff")
    assert ue.open_data().delete(ue.name()).value == 0
    left = {"byte-status": b"\xff\x00\xff", "bit-status": b"\xfd\xff\xff"}
    assert page.load(0, 3).data == left[ue.profile.generation]
    page.store(0, bytes(3))


@case(spec="user_event_parse", level="detail", tier="full")
def test_new_event_in_old_dirt(ue: UserEvents) -> None:
    """Registering does not clear a byte: a new event shows what was stored there before."""
    page = writable(ue.process)
    page.store(0, b"\x02\x42")
    place = ue.event().place
    assert page.shows(place) == {"byte-status": 0x42, "bit-status": 1}[ue.profile.generation]
    page.store(0, bytes(2))


@case(profiles="5.18..6.0")
@variants(
    ("other", b"\x80", " # Used by other", 1),
    ("ftrace", b"\x01", " # Used by ftrace", 1),
    ("perf", b"\x02", " # Used by perf", 1),
    ("all", b"\x83", " # Used by ftrace perf other", 1),
    # No name for such bits, but the event counts as used.
    ("unknown", b"\x04", " # Used by", 1),
    ("every-bit", b"\xff", " # Used by ftrace perf other", 1),
    ("zero", b"\x00", "", 0),
)
def test_text_believes(ue: UserEvents, stored: bytes, used: str, busy: int) -> None:
    """Until 6.0 the text shows the byte of an event, even if a program stored it."""
    page = writable(ue.process)
    ue.open_data().register("seen")
    page.store(1, stored)
    text = ue.tracefs.status(whole=True)
    most = ue.dated("two_status_pages", since=8192, before=4096)
    assert text == f"1:seen{used}\n\nActive: 1\nBusy: {busy}\nMax: {most}\n"
    page.store(1, b"\0")


@case(profiles="5.18..6.0", tier="full")
def test_text_denies(ue: UserEvents) -> None:
    """Until 6.0 an event whose byte was cleared counts as unused, though ftrace records it."""
    page = writable(ue.process)
    ue.open_data().register("seen")
    ue.tracefs.enable("seen")
    page.store(1, b"\0")
    most = ue.dated("two_status_pages", since=8192, before=4096)
    assert ue.tracefs.status(whole=True) == f"1:seen\n\nActive: 1\nBusy: 0\nMax: {most}\n"
    # Nothing else shows that the event is enabled.
    ue.tracefs.disable("seen")


@case(profiles="6.1..6.3")
@variants(
    ("set", b"\xff\xff", False, "1:seen\n"),
    ("cleared", b"\0\0", True, "1:seen # Used by ftrace\n"),
    ("untouched", b"\x02\0", True, "1:seen # Used by ftrace\n"),
    quick=2,
)
def test_text_knows_better(ue: UserEvents, stored: bytes, on: bool, line: str) -> None:
    """Since 6.1 the text shows the kernel's own state, whatever was stored to the page."""
    page = writable(ue.process)
    ue.open_data().register("seen")
    if on:
        ue.tracefs.enable("seen")
    page.store(0, stored)
    assert ue.tracefs.status(whole=True).partition("\n\n")[0] + "\n" == line
    if on:
        ue.tracefs.disable("seen")
    page.store(0, bytes(2))


@case(spec="user_event_show", tier="full")
def test_dynamic_events_say_nothing(ue: UserEvents) -> None:
    """dynamic_events shows no status, neither real nor stored."""
    page = writable(ue.process)
    ue.open_data().register("seen u8 a")
    page.store(0, b"\xff\xff")
    assert ue.tracefs.dynamic_events(whole=True) == "u:seen u8 a\n"
    page.store(0, bytes(2))
