"""write() with two errors: the first check decides."""

import os

from conformance.cases.case import UserEvents, spec, surface, variants
from conformance.cases.support.writing import INDEX, RECORD
from conformance.client.addresses import PAGE, SCRATCH

DOC = "Writing Data: silent about the order of errors"
case = surface("write", spec="fs/read_write.c", doc=DOC, level="detail")

KERNEL_HALF = 0xFFFF_8000_0000_0000


@case(spec="ksys_write, vfs_write")
def test_order_descriptor_first(ue: UserEvents) -> None:
    """A read-only descriptor is EBADF, before a bad buffer, position or index is detected."""
    data = ue.open_data(os.O_RDONLY)
    assert (data.write_at(KERNEL_HALF, 8).errno, data.write(b"\0").errno) == ("EBADF", "EBADF")
    assert (data.write_event(-1).errno, data.pwrite(RECORD, 8).errno) == ("EBADF", "EBADF")
    assert data.pwrite(RECORD, -1).errno == "EINVAL"


@case(spec="trace_events_user.c:user_events_write", needs="negative_index_refused")
@variants({"negative": -1, "unknown": 1})
def test_order_position_before_index(ue: UserEvents, index: int) -> None:
    """pwrite at an offset is EFAULT before the index is checked."""
    data = ue.event().data
    packed = index.to_bytes(4, "little", signed=True)
    assert data.pwrite(packed, 4).errno == "EFAULT"
    # If a negative index is not rejected, the kernel reads out of bounds.
    if index >= 0 or ue.profile.has("negative_index_refused"):
        assert data.pwrite(packed, 0).errno == ("EINVAL" if index == -1 else "ENOENT")


@case(tier="full")
@spec("vfs_write: access_ok, rw_verify_area; trace_events_user.c:user_events_write")
def test_order_last_offset(ue: UserEvents) -> None:
    """A write that ends behind the last offset is EINVAL, after its address, before its index."""
    data = ue.open_data()
    last = (1 << 63) - 1
    assert data.pwrite_at(KERNEL_HALF, 8, last).errno == "EFAULT"
    assert (data.pwrite(RECORD, last).errno, data.pwrite(b"", last).errno) == ("EINVAL", "EFAULT")
    assert data.pwritev([RECORD], last).errno == "EINVAL"
    assert data.pwritev([b""], last).value == 0
    assert ue.open_data(os.O_RDONLY).pwrite(RECORD, last).errno == "EBADF"


@case(spec="vfs_write: access_ok; lib/iov_iter.c:__import_iovec", needs="negative_index_refused")
def test_order_address_before_index(ue: UserEvents) -> None:
    """A payload iovec that reaches a kernel address is EFAULT before a bad index is detected."""
    data = ue.event("u32 a").data
    address = SCRATCH + PAGE * 40
    ue.process.store(address, b"\1\0\0\0")
    assert data.writev_at([(address, 4), (KERNEL_HALF, 4)]).errno == "EFAULT"
    assert data.writev_at([(address, 4), (PAGE, (1 << 63) - 1)]).errno == "EFAULT"
    assert data.writev_at([(address, 4), (PAGE, 4)]).errno == "ENOENT"


@case(needs="negative_index_refused", tier="full")
@spec("trace_events_user.c:user_events_write_core")
@variants(("negative", -1, "EINVAL"), ("unknown", 1, "ENOENT"))
def test_order_index_before_payload(ue: UserEvents, index: int, errno: str) -> None:
    """A bad index is reported before an unreadable payload."""
    data = ue.event("u32 a", enabled=True).data
    address = ue.process.map() + PAGE - 4
    ue.process.store(address, index.to_bytes(4, "little", signed=True))
    assert data.write_at(address, 8).errno == errno
    ue.process.store(address, INDEX)
    unreadable = ue.dated("unreadable_payload_refused", since="EFAULT", before="")
    assert data.write_at(address, 8).errno == unreadable


@case(spec="trace_events_user.c:user_events_write_core", tier="full")
def test_order_length_before_payload(ue: UserEvents) -> None:
    """A short payload is EINVAL, even if it is unreadable."""
    data = ue.event("u32 a", enabled=True).data
    address = ue.process.map() + PAGE - 4
    ue.process.store(address, INDEX)
    unreadable = ue.dated("unreadable_payload_refused", since="EFAULT", before="")
    short = ue.dated("payload_size_checked", since="EINVAL", before=unreadable)
    assert (data.write_at(address, 7).errno, data.write_at(address, 8).errno) == (short, unreadable)
