"""Rights and pages of a mapped ring, and arguments of perf_event_open that no event has."""

import mmap

from conformance.cases.case import UserEvents, surface, variants
from conformance.client.addresses import READ_WRITE
from conformance.client.perf import COUNTING, PerfAttr, open_perf, open_stored, store_id

SPEC = "kernel/events/core.c:perf_mmap_fault"
DOC = (
    "include/uapi/linux/perf_event.h@v6.12:perf_event_mmap_page: data_tail is written by a program"
)
case = surface("perf", SPEC, DOC, level="detail", tier="full", facilities="perf")

PROT_NONE = 0


@case
def test_ring_rights(ue: UserEvents) -> None:
    """A program can write to the control page of a ring, and to no other page."""
    ue.event()
    ring = open_perf(ue.process, ue.name()).map(3)
    assert ue.process.store(ring.address + 1024, bytes(8)).errno == ""
    assert ue.process.store(ring.address + 4096, b"x").errno == "EFAULT"


@case
@variants(("read", mmap.PROT_READ, ""), ("none", PROT_NONE, "EFAULT"))
def test_ring_protection(ue: UserEvents, protection: int, errno: str) -> None:
    """A ring has the rights of its mapping, which mprotect changes for pages used later."""
    ue.event()
    ring = open_perf(ue.process, ue.name()).map(protection=protection)
    assert ue.process.load(ring.address + 1024, 32).errno == errno
    assert ue.process.store(ring.address + 1024, bytes(8)).errno == "EFAULT"
    assert ue.process.protect(ring.address, READ_WRITE, 2).errno == ""
    assert ue.process.store(ring.address + 1024, bytes(8)).errno == ""


@case(doc="silent about numbers that are out of range", spec="perf_event_alloc, perf_event_open")
@variants(
    ("processor", COUNTING, -2, "EINVAL"),
    ("period", PerfAttr(period=1 << 63), -1, "EINVAL"),
    ("period-largest", PerfAttr(period=(1 << 63) - 1), -1, ""),
)
def test_arguments(ue: UserEvents, attr: PerfAttr, cpu: int, errno: str) -> None:
    """A negative processor other than -1, and a period that is negative as an s64, are EINVAL."""
    ue.event()
    store_id(ue.process, ue.name(), attr)
    assert open_stored(ue.process, attr, cpu=cpu).errno == errno
