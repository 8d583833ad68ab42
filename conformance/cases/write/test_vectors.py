"""writev(): index and payload split into iovecs."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.cases.support.writing import RECORD
from conformance.client.addresses import PAGE, SCRATCH
from conformance.client.user_events import UserEvents

case = surface(
    "write",
    spec="trace_events_user.c",
    doc="Documentation/trace/user_events.rst@v6.12: Writing Data",
)


@case(
    spec="user_events_write_iter",
    doc="writev() may carry the index in one vector and the payload in others",
)
def test_equals_writev(ue: UserEvents) -> None:
    """The same bytes through write and writev give the same result and the same record."""
    data = ue.event("u32 a; char[4] b", enabled=True).data
    assert data.write(b"\0\0\0\0\7\0\0\0abc\0").value == 12
    assert data.writev([b"\0\0\0\0", b"\7\0\0\0abc\0"]).value == 12
    line = ue.line("a=0x7 (7)", "b=abc", dump="07 00 00 00 61 62 63 00")
    assert ue.tracefs.records() == [line, line]


@case(
    spec="user_events_write_core, lib/iov_iter.c:copy_from_iter",
    doc="vectors are the pieces of one index and payload",
)
@variants(
    ("one", [b"\0\0\0\0\x44\x33\x22\x11"]),
    ("index_1_3", [b"\0", b"\0\0\0", b"\x44\x33\x22\x11"]),
    ("index_bytes", [b"\0", b"\0", b"\0", b"\0", b"\x44\x33\x22\x11"]),
    ("all_bytes", [b"\0", b"\0", b"\0", b"\0", b"\x44", b"\x33", b"\x22", b"\x11"]),
    ("empty_first", [b"", b"\0\0\0\0", b"\x44\x33\x22\x11"]),
    ("empty_between", [b"\0\0", b"", b"\0\0", b"", b"\x44\x33\x22\x11"]),
    ("empty_last", [b"\0\0\0\0", b"\x44\x33\x22\x11", b""]),
)
def test_parts(ue: UserEvents, parts: list[bytes]) -> None:
    """Index and payload may be split into iovecs anywhere: it is one record."""
    data = ue.event("u32 a", enabled=True).data
    assert data.writev(parts).value == 8
    assert ue.tracefs.records() == [ue.line("a=0x11223344 (287454020)", dump="44 33 22 11")]


@case(spec="user_events_write_core", doc="the write index must stand at the start of the data")
@variants(
    ("one", [b"\0"]), ("one_and_two", [b"\0", b"\0\0"]), ("three_and_empty", [b"\0\0\0", b""])
)
def test_parts_too_short_for_index(ue: UserEvents, parts: list[bytes]) -> None:
    """iovecs of one to three bytes in total are EFAULT."""
    data = ue.event(enabled=True).data
    assert data.writev(parts).errno == "EFAULT"
    assert ue.tracefs.records() == []


@case(
    spec="fs/read_write.c:do_iter_readv_writev is not reached without a byte",
    doc="silent about empty vectors",
)
@variants({"no_parts": [], "one_empty": [b""], "three_empty": [b"", b"", b""]})
def test_writev_of_nothing(ue: UserEvents, parts: list[bytes]) -> None:
    """writev of zero bytes returns 0, where write is EFAULT."""
    data = ue.open_data()
    assert data.writev(parts).value == 0
    assert data.write(b"").errno == "EFAULT"


@case(
    spec="lib/iov_iter.c:iovec_from_user, copy_iovec_from_user",
    doc="silent; writev(2) has limits of its own",
    tier="full",
)
def test_iovec_limits(ue: UserEvents) -> None:
    """1024 iovecs are accepted; 1025, or one of negative length, are EINVAL."""
    data = ue.event("u32 a", enabled=True).data
    ue.process.store(SCRATCH + PAGE * 40, RECORD)
    whole, empty = (SCRATCH + PAGE * 40, 8), (SCRATCH, 0)
    assert data.writev_at([empty] * 1023 + [whole]).value == 8
    assert data.writev_at([empty] * 1024 + [whole]).errno == "EINVAL"
    assert data.writev_at([whole, (SCRATCH, 1 << 63)]).errno == "EINVAL"
    assert len(ue.tracefs.records()) == 1
