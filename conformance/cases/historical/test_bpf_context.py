"""BPF context of a write in the merge window of 5.18, which was never released.

A program is attached to a perf event on the user event.  It stores its context, and the memory that
the context points to, for the case to compare.  With the flag BPF_ITER these are the iovecs.
"""

from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.bpf_context import DATA, IN_KERNEL, IN_USER, INDEX, PAYLOAD, WRITTEN
from conformance.cases.support.bpf_recorder import KERNEL, Recorder

case = surface(
    "bpf_context",
    spec="user_event_bpf",
    doc="@merge-window: Writing Data: programs are given a struct "
    "user_bpf_context; silent about which buffer",
    level="behaviour",
    profiles="5.18..6.0",
    needs="bpf_programs_run perf_sink",
    facilities="bpf_tracing",
)


@case
@variants(
    ("index_and_payload", [WRITTEN], 0x2000_0001_0004),
    ("index.payload", [INDEX, PAYLOAD], 0x2000_0001_0100),
    ("ind.ex.payload", [b"\0\0\0", b"\0", PAYLOAD], 0x2000_0001_0200),
    ("nothing.index.payload", [b"", INDEX, PAYLOAD], 0x2000_0001_0200),
    ("ind.ex_and_payload", [b"\0", b"\0\0\0" + PAYLOAD], 0x2000_0001_0103),
)
def test_one_part(ue: UserEvents, parts: list[bytes], address: int) -> None:
    """A payload in one segment stays in the writer's memory: the program gets its address."""
    data = ue.event("u64 a").data
    recorder = Recorder.attached(ue)
    # Apart from each other, so that every segment has its own address.
    places = [0x2000_0001_0000 + 0x100 * number for number in range(len(parts))]
    for place, part in zip(places, parts, strict=True):
        ue.process.store(place, part)
    vector = [(place, len(part)) for place, part in zip(places, parts, strict=True)]
    assert data.writev_at(vector).value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_USER, 8, address))
    assert seen.content[:8] == PAYLOAD


@case
def test_write(ue: UserEvents) -> None:
    """write(), pwrite() and pwritev() of one segment look the same to the program."""
    data = ue.event("u64 a").data
    recorder = Recorder.attached(ue)
    for written in (data.write(WRITTEN), data.pwrite(WRITTEN, 0), data.pwritev([WRITTEN], 77)):
        assert written.value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (3, (IN_USER, 8, DATA + 4))
    assert seen.content[:8] == PAYLOAD


@case(tier="full")
def test_end_of_memory(ue: UserEvents) -> None:
    """The program can read the payload to its last byte, after which nothing is mapped."""
    data = ue.event("u64 a").data
    recorder = Recorder.attached(ue)
    # One page at the first free address.
    address = ue.process.place(WRITTEN)
    assert data.write_at(address, 12).value == 12
    seen = recorder.take()
    assert seen.context == (IN_USER, 8, 0x2000_2000_0FF8)
    assert seen.content[:8] == PAYLOAD


@case(tier="full")
@variants(9, 512, 513, 4096, 4097, 8176)
def test_longer_payload(ue: UserEvents, length: int) -> None:
    """The length is that of the payload, however long, if nothing is copied."""
    data = ue.event("u64 a").data
    recorder = Recorder.attached(ue, room=length)
    payload = b"x" * (length - 1) + b"."
    assert data.writev([INDEX, payload]).value == 4 + length
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_USER, length, DATA + 4))
    assert seen.content[:length] == payload


@case
@variants(
    ("index.pay.load", [INDEX, PAYLOAD[:3], PAYLOAD[3:]]),
    ("index_and_pay.load", [INDEX + PAYLOAD[:3], PAYLOAD[3:]]),
    ("each_byte", [bytes([each]) for each in WRITTEN]),
    # A segment after the index counts, even an empty one.
    ("index.nothing.payload", [INDEX, b"", PAYLOAD]),
    ("index.payload.nothing", [INDEX, PAYLOAD, b""]),
)
def test_several_parts(ue: UserEvents, parts: list[bytes]) -> None:
    """A payload in several segments is copied: the program gets a kernel address."""
    data = ue.event("u64 a").data
    recorder = Recorder.attached(ue)
    assert data.writev(parts).value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_KERNEL, 8, KERNEL))
    assert seen.content[:8] == PAYLOAD


@case(spec="user_event_bpf: MAX_BPF_COPY_SIZE, MAX_STACK_BPF_DATA", tier="full")
@doc("Writing Data: silent about a limit")
@variants(
    # One page at most; up to 512 bytes fit a buffer on the stack.
    (4097, 4096),
    (4096, 4096),
    (4095, 4095),
    (513, 513),
    (512, 512),
    (511, 511),
    (8176, 4096),
)
def test_copy_length(ue: UserEvents, length: int, copied: int) -> None:
    """Of a payload in several segments at most a page is copied, and that is the length passed."""
    data = ue.event("u64 a").data
    recorder = Recorder.attached(ue, room=copied)
    payload = bytes(each % 251 for each in range(length))
    assert data.writev([INDEX, payload[:200], payload[200:]]).value == 4 + length
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_KERNEL, copied, KERNEL))
    assert seen.content[:copied] == payload[:copied]


@case(spec="user_event_perf; trace_events_user.c:user_events_write_core")
@doc("Writing Data: silent about an empty payload")
@variants(
    ("index", "", [INDEX], (0, 0, KERNEL)),
    ("index.nothing", "", [INDEX, b""], (1, 0, 0x2000_0001_0004)),
    ("index.nothing.nothing", "", [INDEX, b"", b""], (0, 0, KERNEL)),
    ("iterator", ":BPF_ITER", [INDEX], (2, 0, KERNEL)),
    ("iterator.nothing", ":BPF_ITER", [INDEX, b""], (2, 0, KERNEL)),
)
def test_nothing(
    ue: UserEvents, flag: str, parts: list[bytes], context: tuple[int, int, int]
) -> None:
    """With an empty payload the program runs, whatever segments are left, and the write fails."""
    data = ue.register(ue.name() + flag)
    recorder = Recorder.attached(ue, room=0, parts=0)
    # A copy of zero bytes counts as failed, until 6.4.
    assert data.writev(parts).errno == "EFAULT"
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, context)
    if flag:
        assert seen.iterator == (0, len(parts) - 1, KERNEL)


# user_bpf_context.data_type.
IN_IOVECS = 2


@case(doc="Command Format: BPF_ITER gives programs the raw iovecs", level="contract")
@variants(
    (
        "index_and_pay.lo.ad",
        [INDEX + PAYLOAD[:2], PAYLOAD[2:4], PAYLOAD[4:]],
        4,
        3,
        [(DATA, 6), (DATA + 6, 2), (DATA + 8, 4)],
    ),
    ("index_and_payload", [WRITTEN], 4, 1, [(DATA, 12)]),
    ("index.payload", [INDEX, PAYLOAD], 0, 1, [(DATA + 4, 8)]),
    ("index.pay.load", [INDEX, PAYLOAD[:3], PAYLOAD[3:]], 0, 2, [(DATA + 4, 3), (DATA + 7, 5)]),
    (
        "ind.ex_and_pay.load",
        [b"\0\0\0", b"\0" + PAYLOAD[:3], PAYLOAD[3:]],
        1,
        2,
        [(DATA + 3, 4), (DATA + 7, 5)],
    ),
    ("index.nothing.payload", [INDEX, b"", PAYLOAD], 0, 2, [(DATA + 4, 0), (DATA + 4, 8)]),
)
def test_iterator(
    ue: UserEvents, parts: list[bytes], offset: int, count: int, iovecs: list[tuple[int, int]]
) -> None:
    """With the flag BPF_ITER programs get the iovecs that follow the write index."""
    data = ue.register(ue.name() + ":BPF_ITER u64 a")
    recorder = Recorder.attached(ue, parts=count)
    assert data.writev(parts).value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_IOVECS, 8, KERNEL))
    # The kernel's copy of the iovecs, not the array passed to writev().
    assert seen.iterator == (offset, count, KERNEL)
    assert seen.iovecs == iovecs


@case(doc="Command Format: BPF_ITER gives programs the raw iovecs", level="contract")
def test_iterator_of_write(ue: UserEvents) -> None:
    """write() has one iovec, which starts with the write index."""
    data = ue.register(ue.name() + ":BPF_ITER u64 a")
    recorder = Recorder.attached(ue, parts=1)
    assert data.write(WRITTEN).value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_IOVECS, 8, KERNEL))
    assert seen.iterator == (4, 1, KERNEL)
    assert seen.iovecs == [(DATA, 12)]


@case(tier="full")
@doc("Command Format: BPF_ITER gives programs the raw iovecs; silent about the length")
def test_iterator_length(ue: UserEvents) -> None:
    """Nothing is copied for an iterator: its length is that of the payload, even over a page."""
    data = ue.register(ue.name() + ":BPF_ITER u64 a")
    recorder = Recorder.attached(ue, parts=2)
    assert data.writev([INDEX, bytes(5000), bytes(100)]).value == 5104
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_IOVECS, 5100, KERNEL))
    assert seen.iovecs == [(DATA + 4, 5000), (DATA + 5004, 100)]


@case(spec="user_event_parse, user_event_parse_flags", tier="full")
@doc("Command Format: silent about flags of an existing event")
@variants(
    ("without", "", ":BPF_ITER", 1),
    ("with", ":BPF_ITER", "", 2),
    ("with_another", ":OTHER", ":BPF_ITER", 1),
    ("among_others", ":OTHER,BPF_ITER", ":OTHER", 2),
)
def test_flag_of_creation(ue: UserEvents, created: str, registered: str, kind: int) -> None:
    """The flag counts only where the event is created, here by dynamic_events."""
    ue.tracefs.command(f"u:{ue.name()}{created} u64 a\n")
    data = ue.register(f"{ue.name()}{registered} u64 a")
    recorder = Recorder.attached(ue)
    data.write(WRITTEN)
    assert recorder.take().data_type == kind
