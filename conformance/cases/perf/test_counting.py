"""perf events that count, and perf ring buffers that are full: which records are lost."""

import mmap

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.perf_samples import A_SAMPLE, B_SAMPLE, A, with_perf, with_ring
from conformance.client.addresses import PAGE
from conformance.client.perf import COUNTING, PerfAttr, open_perf

SPEC = "kernel/events/core.c"
DOC = "include/uapi/linux/perf_event.h@v6.12"
MMAP_PAGE = "include/uapi/linux/perf_event.h@v6.12:perf_event_mmap_page"
case = surface("perf", SPEC, DOC, level="detail", needs="perf_sink", tier="full", facilities="perf")


@case(spec="_perf_event_enable", doc="disabled, PERF_EVENT_IOC_ENABLE and _DISABLE")
def test_enabled_later(ue: UserEvents) -> None:
    """A perf event counts from enable to disable; writes before and after succeed uncounted."""
    event, perf, ring = with_ring(ue, attr=PerfAttr(disabled=True))
    # perf has the event enabled, so it is not EBADF, though the record is dropped.
    assert event.write(A).value == 8
    assert perf.enable().value == 0
    assert event.write(b"\x42\0\0\0").value == 8
    assert perf.disable().value == 0
    assert event.write(A).value == 8
    assert ring.records() == [B_SAMPLE]
    assert perf.count == 1


@case(spec="perf_read_one")
@doc("read(2) gives the number in 8 bytes; PERF_EVENT_IOC_RESET makes it 0")
def test_count(ue: UserEvents) -> None:
    """read(2) returns the count in 8 bytes, ENOSPC for a smaller buffer; RESET sets it to 0."""
    event, perf = with_perf(ue, attr=COUNTING)
    assert perf.read().data == bytes(8)
    for _ in range(3):
        event.write(A)
    assert perf.read(64).data == b"\x03\0\0\0\0\0\0\0"
    assert perf.read(7).errno == "ENOSPC"
    assert perf.reset().value == 0
    assert perf.count == 0
    event.write(A)
    assert perf.count == 1


@case(spec="_perf_ioctl", doc="the numbers of perf's ioctl", needs="")
@variants({"register": 0xC0082A00, "delete": 0x40082A01})
def test_unknown_ioctl(ue: UserEvents, number: int) -> None:
    """The user_events ioctls are ENOTTY on a perf event."""
    ue.event()
    assert open_perf(ue.process, ue.name()).ioctl(number).errno == "ENOTTY"


@case(spec="perf_tp_event_match", doc="exclude_kernel: nothing that happens in the kernel")
def test_exclude_kernel(ue: UserEvents) -> None:
    """A write counts as kernel mode: an event with exclude_kernel enables and counts none."""
    event, perf = with_perf(ue, attr=PerfAttr(exclude_kernel=True))
    assert event.write(A).value == 8
    assert perf.count == 0


@case(level="behaviour", needs="perf_sink dynamic_fields_validated", tier="quick")
@spec("trace_events_user.c:user_event_perf")
@doc("@v6.12: Writing Data: silent about tools that follow one process")
def test_other_process(ue: UserEvents) -> None:
    """perf follows its own process: records of others are neither counted nor validated."""
    event = ue.event("__rel_loc char[] s")
    tool = ue.new_process()
    theirs = ue.event("__rel_loc char[] s", of=tool).data
    perf = open_perf(tool, ue.name())
    # Past the end of the payload.
    invalid = b"\0\0\xff\xff"
    assert event.write(invalid).value == 8
    assert perf.count == 0
    assert theirs.write_event(0, invalid).errno == "EFAULT"
    assert theirs.write_event(0, bytes(4)).value == 8
    assert perf.count == 1


@case(spec="inherit_event", doc="inherit: children that are forked later are counted too")
@variants(("yes", True, 3), ("no", False, 1))
def test_inherit(ue: UserEvents, inherit: bool, count: int) -> None:
    """Children count for an inherited event of their parent, also after they exit."""
    event = ue.event("u32 a")
    before = ue.fork(ue.process)
    perf = open_perf(ue.process, ue.name(), PerfAttr(inherit=inherit))
    child = ue.fork(ue.process)
    # One from before, two from the child, one of its own.
    assert event.data.of(before).write_event(0, A).value == 8
    assert event.data.of(child).write_event(0, A).value == 8
    assert (event.data.of(child).write_event(0, A).value, event.write(A).value) == (8, 8)
    assert perf.count == count
    child.exit()
    assert perf.count == count


@case(spec="find_get_context", doc="an event follows a process, or a processor")
@variants(("all", -1, 2), ("one", 0, 1))
def test_processor(ue: UserEvents, pid: int, count: int) -> None:
    """A per-CPU event counts all writers on that CPU, or only the selected process."""
    other = ue.new_process()
    ue.process.pin(0)
    other.pin(0)
    mine, theirs = ue.open_data(), other.open_data()
    mine.register(ue.name() + " u32 a")
    theirs.register(ue.name() + " u32 a")
    event = open_perf(ue.process, ue.name(), pid=pid, cpu=0)
    ring = event.map()
    assert (theirs.write_event(0, A).value, mine.write_event(0, b"\x42\0\0\0").value) == (8, 8)
    assert ring.records() == [A_SAMPLE, B_SAMPLE][-count:]
    assert event.count == count


@case(spec="kernel/events/ring_buffer.c:__perf_output_begin")
@doc("include/uapi/linux/perf_event.h@v6.12:PERF_RECORD_LOST")
def test_lost(ue: UserEvents) -> None:
    """A sample that finds no room is lost; the next that fits is preceded by the number lost."""
    event, perf, ring = with_ring(ue)
    # 8 of header, 4 of size, 8 of common fields, 2004 of payload: only two fit.
    long = b"\xee" * 2004
    assert [event.write(long).value for _ in range(5)] == [2008] * 5
    assert ring.lines()[0] == "head 4048 tail 0"
    assert perf.count == 5
    ring.set_tail(4048)
    assert event.write(A).value == 8
    assert ring.lines() == ["head 4096 tail 4048", "LOST misc 0 size 24 lost 3", A_SAMPLE]
    # Reported once.
    assert event.write(A).value == 8
    assert ring.lines()[-1] == "SAMPLE misc 1 size 24 raw 12: 41 00 00 00"
    assert ring.lines()[0] == "head 4120 tail 4048"


@case(spec="kernel/events/ring_buffer.c:ring_buffer_has_space")
@doc("include/uapi/linux/perf_event.h@v6.12:PERF_RECORD_LOST: silent about the exact room")
@variants((4068, 4088), (4076, 0))
def test_lost_exactly_full(ue: UserEvents, length: int, head: int) -> None:
    """A ring is never filled to its last byte: a sample of exactly that size is lost."""
    event, _, ring = with_ring(ue)
    assert event.write(bytes(length)).ok
    assert ring.lines()[0] == f"head {head} tail 0"


@case(spec="kernel/events/ring_buffer.c:__perf_output_begin", doc=MMAP_PAGE)
def test_wraps(ue: UserEvents) -> None:
    """A ring that is consumed wraps, even within a sample; data_head only grows."""
    event, _, ring = with_ring(ue)
    event.write(bytes(4060))
    ring.set_tail(4080)
    event.write(b"1234567890ab")
    lines = [
        "head 4112 tail 4080",
        "SAMPLE misc 1 size 32 raw 20: 31 32 33 34 35 36 37 38 39 30 61 62",
    ]
    assert ring.lines() == lines


@case(spec="kernel/events/ring_buffer.c:ring_buffer_init")
@doc("a ring mapped without PROT_WRITE is overwritten")
def test_overwrites(ue: UserEvents) -> None:
    """A ring mapped read-only is overwritten, and no sample is lost."""
    event = ue.event("u32 a")
    ring = open_perf(ue.process, ue.name()).map(protection=mmap.PROT_READ)
    assert ring.set_tail(8).errno == "EFAULT"
    for _ in range(3):
        event.write(b"\xee" * 2004)
    assert ring.lines() == ["head 6072 tail 0", "overwritten"]
    event.write(A)
    # 6072 is 1976 past the end: type, misc and size, then the raw size.
    written = b"\x09\0\0\0\x01\0\x18\0\x0c\0\0\0"
    assert ue.process.load(ring.address + PAGE + 1976, 12).data == written


@case(spec="kernel/events/ring_buffer.c:rb_alloc", doc=MMAP_PAGE)
def test_no_records_page(ue: UserEvents) -> None:
    """A ring without data pages takes no samples, and the event still counts."""
    event, perf = with_perf(ue)
    ring = perf.map(1)
    assert event.write(A).value == 8
    assert ue.process.load(ring.address + 1024, 8).data == bytes(8)
    assert perf.count == 1


@case(spec="perf_output_begin", doc=MMAP_PAGE)
def test_mapped_later(ue: UserEvents) -> None:
    """Writes before the ring was mapped are counted, and not found in it."""
    event, perf = with_perf(ue)
    event.write(A)
    ring = perf.map()
    event.write(b"\x42\0\0\0")
    assert ring.lines() == ["head 24 tail 0", B_SAMPLE]
    assert perf.count == 2
