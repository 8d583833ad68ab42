"""BPF context of an event with the flag BPF_ITER: the iovecs, uncopied."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.cases.support.bpf_context import DATA, INDEX, PAYLOAD, WRITTEN
from conformance.cases.support.bpf_recorder import KERNEL, Recorder
from conformance.client.perf import listen
from conformance.client.user_events import UserEvents

case = surface(
    "bpf_context",
    spec="trace_events_user.c:user_event_bpf",
    doc="Documentation/trace/user_events.rst@merge-window: Command Format: BPF_ITER gives "
    "programs the raw iovecs",
    profiles="5.18..6.0",
    needs="bpf_programs_run perf_sink",
    facilities="bpf_tracing",
)

# user_bpf_context.data_type.
IN_IOVECS = 2


@case
@variants(
    (
        "index_and_pay.lo.ad",
        [INDEX + PAYLOAD[:2], PAYLOAD[2:4], PAYLOAD[4:]],
        4,
        3,
        [(0x2000_0001_0000, 6), (0x2000_0001_0006, 2), (0x2000_0001_0008, 4)],
    ),
    ("index_and_payload", [WRITTEN], 4, 1, [(0x2000_0001_0000, 12)]),
    ("index.payload", [INDEX, PAYLOAD], 0, 1, [(0x2000_0001_0004, 8)]),
    (
        "index.pay.load",
        [INDEX, PAYLOAD[:3], PAYLOAD[3:]],
        0,
        2,
        [(0x2000_0001_0004, 3), (0x2000_0001_0007, 5)],
    ),
    (
        "ind.ex_and_pay.load",
        [b"\0\0\0", b"\0" + PAYLOAD[:3], PAYLOAD[3:]],
        1,
        2,
        [(0x2000_0001_0003, 4), (0x2000_0001_0007, 5)],
    ),
    (
        "index.nothing.payload",
        [INDEX, b"", PAYLOAD],
        0,
        2,
        [(0x2000_0001_0004, 0), (0x2000_0001_0004, 8)],
    ),
)
def test_iterator(
    ue: UserEvents, parts: list[bytes], offset: int, count: int, iovecs: list[tuple[int, int]]
) -> None:
    """With the flag BPF_ITER programs get the iovecs that follow the write index."""
    data = ue.open_data()
    data.register(ue.name() + ":BPF_ITER u64 a")
    recorder = Recorder(ue.process, parts=count)
    recorder.attach(listen(ue.process, ue.name()))
    assert data.writev(parts).value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_IOVECS, 8, KERNEL))
    # The kernel's copy of the iovecs, not the array passed to writev().
    assert seen.iterator == (offset, count, KERNEL)
    assert seen.iovecs == iovecs


@case
def test_iterator_of_write(ue: UserEvents) -> None:
    """write() has one iovec, which starts with the write index."""
    data = ue.open_data()
    data.register(ue.name() + ":BPF_ITER u64 a")
    recorder = Recorder(ue.process, parts=1)
    recorder.attach(listen(ue.process, ue.name()))
    assert data.write(WRITTEN).value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_IOVECS, 8, KERNEL))
    assert seen.iterator == (4, 1, KERNEL)
    assert seen.iovecs == [(DATA, 12)]


@case(tier="full")
def test_iterator_length(ue: UserEvents) -> None:
    """Nothing is copied for an iterator: its length is that of the payload, even over a page."""
    data = ue.open_data()
    data.register(ue.name() + ":BPF_ITER u64 a")
    recorder = Recorder(ue.process, parts=2)
    recorder.attach(listen(ue.process, ue.name()))
    assert data.writev([INDEX, bytes(5000), bytes(100)]).value == 5104
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_IOVECS, 5100, KERNEL))
    assert seen.iovecs == [(DATA + 4, 5000), (DATA + 5004, 100)]


@case(spec="trace_events_user.c:user_event_parse, user_event_parse_flags", tier="full")
@variants(
    ("without", "", ":BPF_ITER", 1),
    ("with", ":BPF_ITER", "", 2),
    ("with_another", ":OTHER", ":BPF_ITER", 1),
    ("among_others", ":OTHER,BPF_ITER", ":OTHER", 2),
)
def test_flag_of_creation(ue: UserEvents, created: str, registered: str, kind: int) -> None:
    """The flag counts only where the event is created, here by dynamic_events."""
    ue.tracefs.command(f"u:{ue.name()}{created} u64 a\n")
    data = ue.open_data()
    data.register(f"{ue.name()}{registered} u64 a")
    recorder = Recorder(ue.process)
    recorder.attach(listen(ue.process, ue.name()))
    data.write(WRITTEN)
    assert recorder.take().data_type == kind
