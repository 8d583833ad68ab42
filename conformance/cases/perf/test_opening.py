"""perf_event_open on user events, and mapping of the ring buffer."""

import mmap

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.status_text import used_by
from conformance.client.addresses import ATTR
from conformance.client.perf import (
    COUNTING,
    PerfAttr,
    id_path,
    open_perf,
    open_raw,
    open_stored,
    store_id,
)

SPEC = "kernel/events/core.c:perf_mmap"
DOC = "include/uapi/linux/perf_event.h@v6.12: config of a tracepoint is the number of its event"
case = surface("perf", SPEC, DOC, level="detail", tier="full", facilities="perf")


@case(spec="perf_allow_kernel")
@doc("exclude_kernel; Documentation/admin-guide/sysctl/kernel.rst:")
@doc("kernel.perf_event_paranoid is 2, which forbids what tells about the kernel")
@variants(
    # perf_trace_event_perm
    ("raw", PerfAttr(exclude_kernel=True), "EPERM", ""),
    ("kernel", PerfAttr(), "EACCES", ""),
    ("counting", PerfAttr(period=0, sample_type=0, exclude_kernel=True), "", "perf"),
    ("counting_kernel", COUNTING, "EACCES", ""),
)
def test_unprivileged(ue: UserEvents, attr: PerfAttr, errno: str, listens: str) -> None:
    """Unprivileged, raw samples are EPERM, kernel mode is EACCES, and counting works."""
    ue.event("u32 a")
    user = ue.new_process()
    store_id(user, ue.name(), attr)
    user.setuid(1000)
    assert open_stored(user, attr).errno == errno
    assert used_by(ue) == ue.dated("perf_sink", since=listens, before="")


@case(spec="find_get_context: perf_allow_cpu")
@doc("Documentation/admin-guide/sysctl/kernel.rst@v6.12: perf_event_paranoid:")
@doc("from 1 on no events of processors")
def test_unprivileged_processor(ue: UserEvents) -> None:
    """Unprivileged, an event for all processes of a CPU is EACCES."""
    attr = PerfAttr(period=0, sample_type=0, exclude_kernel=True)
    ue.event()
    user = ue.new_process()
    store_id(user, ue.name(), attr)
    user.setuid(1000)
    assert open_stored(user, attr, pid=-1, cpu=0).errno == "EACCES"
    assert used_by(ue) == ""


@case(spec="trace_event_perf.c:perf_trace_init", needs="lasting_events")
def test_deleted_id(ue: UserEvents) -> None:
    """The id of a deleted event is EINVAL, even for a process that may open no event."""
    ue.tracefs.command(f"u:{ue.name()}\n")
    attr = PerfAttr(exclude_kernel=True)
    assert store_id(ue.process, ue.name(), attr).value == 8
    assert ue.open_data().delete(ue.name()).ok
    assert open_stored(ue.process, attr).errno == "EINVAL"
    assert ue.tracefs.read(id_path(ue.name())).errno == "ENOENT"
    ue.process.setuid(1000)
    # Without an event there is no permission check that would return EPERM.
    assert open_stored(ue.process, attr).errno == "EINVAL"


@case(spec="trace_event_perf.c:perf_trace_init")
@variants({"17-bits": 0x10000, "33-bits": 0x1_0000_FFFF, "all-bits": (1 << 64) - 1})
def test_wrong_config(ue: UserEvents, config: int) -> None:
    """An id that no event can have is EINVAL, and EACCES without permission for tracepoints."""
    assert open_raw(ue.process, 2, config).errno == "EINVAL"
    ue.process.setuid(1000)
    assert open_raw(ue.process, 2, config).errno == "EACCES"


@case(spec="perf_event_alloc")
@doc("an event follows a process, or a processor, or a process on a processor")
@variants(("everywhere", -1, -1), ("absent", -1, 8192), ("mine", 0, 8192))
def test_nobody_nowhere(ue: UserEvents, pid: int, cpu: int) -> None:
    """All processes on all CPUs, or a CPU that does not exist, is EINVAL; no event is enabled."""
    ue.event()
    assert open_perf(ue.process, ue.name(), pid=pid, cpu=cpu).errno == "EINVAL"
    assert used_by(ue) == ""


@case(spec="perf_copy_attr")
@doc("include/uapi/linux/perf_event.h@v6.12:perf_event_attr: the flags end with reserved bits,")
@doc("sample_type with its MAX")
@variants({"flags": 47, "sample_type": 31})
def test_reserved_bit(ue: UserEvents, offset: int) -> None:
    """Bit 63 of flags or sample_type is EINVAL, with or without permission."""
    ue.event()
    store_id(ue.process, ue.name(), COUNTING)
    ue.process.store(ATTR + offset, b"\x80")
    assert open_stored(ue.process, COUNTING).errno == "EINVAL"
    # Only that bit was wrong.
    ue.process.store(ATTR + offset, b"\0")
    event = open_stored(ue.process, COUNTING)
    assert event.errno == ""
    event.close()
    ue.process.store(ATTR + offset, b"\x80")
    ue.process.setuid(1000)
    assert open_stored(ue.process, COUNTING).errno == "EINVAL"


@case(spec="perf_mmap; kernel/events/ring_buffer.c:rb_alloc")
@doc("include/uapi/linux/perf_event.h@v6.12:perf_event_mmap_page: one page and 2^n after it")
@variants((2, ""), (1, ""), (3, ""), (4, "EINVAL"), (5, ""), (6, "EINVAL"))
def test_ring_size(ue: UserEvents, pages: int, errno: str) -> None:
    """A ring has one control page and 0, 1, 2 or 4 data pages; other sizes are EINVAL."""
    ue.event()
    assert open_perf(ue.process, ue.name()).map(pages).mapped.errno == errno


@case(doc="silent about mappings that are private or lie elsewhere")
@variants(
    ("private", PerfAttr(), False, 0),
    ("offset", PerfAttr(), True, 4096),
    # All children of the process would write to one ring.
    ("inherit", PerfAttr(inherit=True), True, 0),
)
def test_ring_refused(ue: UserEvents, attr: PerfAttr, shared: bool, offset: int) -> None:
    """A ring that is private, mapped at an offset, or of an inherited event is EINVAL."""
    ue.event()
    event = open_perf(ue.process, ue.name(), attr)
    assert event.map(shared=shared, offset=offset).mapped.errno == "EINVAL"


@case(doc="silent about a ring that is mapped twice", needs="perf_sink")
def test_ring_twice(ue: UserEvents) -> None:
    """A second mapping of the same size shows the same ring; another size is EINVAL."""
    event = ue.event("u32 a")
    perf = open_perf(ue.process, ue.name())
    first, second = perf.map(), perf.map(protection=mmap.PROT_READ)
    assert perf.map(3).mapped.errno == "EINVAL"
    event.write(b"\x41\0\0\0")
    assert first.records() == ["SAMPLE misc 1 size 24 raw 12: 41 00 00 00"]
    assert second.records() == ["SAMPLE misc 1 size 24 raw 12: 41 00 00 00"]
    first.unmap()
    event.write(b"\x42\0\0\0")
    assert second.lines()[0] == "head 48 tail 0"
    second.unmap()
    # The records were freed with the last mapping.
    assert perf.map().lines() == ["head 0 tail 0"]


@case(spec="perf_event_init_userpage")
@doc("include/uapi/linux/perf_event.h@v6.12:perf_event_mmap_page: data_head, data_tail,")
@doc("data_offset and data_size from byte 1024 on")
def test_ring_page(ue: UserEvents) -> None:
    """The control page has the offset and size of the data."""
    ue.event()
    ring = open_perf(ue.process, ue.name()).map(3)
    place = b"\0\x10\0\0\0\0\0\0" + b"\0\x20\0\0\0\0\0\0"
    assert ue.process.load(ring.address + 1024, 32).data == bytes(16) + place
