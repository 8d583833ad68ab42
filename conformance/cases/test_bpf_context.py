"""What attached BPF programs are given of a write: in the merge window of 5.18, never released.

A program is attached to an event of perf that listens to the user event.  It keeps its
context, and what that leads to, for the case to look at.
"""

from __future__ import annotations

from conformance.abi.bpf_layouts import ProgramType
from conformance.cases.declare import case, variants
from conformance.cases.recorder import KERNEL, Recorder
from conformance.program import operations as op
from conformance.program.bpf import R0, R1, Size, exit_insn, ldx_mem
from conformance.sut.bpf import Bpf
from conformance.sut.perf import Wish, listen
from conformance.sut.user_events import UserEvents

BYTES = "5.18..6.0"
# Programs are reached by way of perf.
NEEDS = ("bpf_programs_run", "perf_sink")
# The text of 5.18 before "Remove eBPF interfaces"; what is left of it is silent.
RST = "Documentation/trace/user_events.rst@merge-window"
EBPF = f"{RST}: Writing Data: programs are given a struct user_bpf_context"
HEADER = "include/linux/user_events.h@merge-window: struct user_bpf_context"
ITERATOR = f"{RST}: Command Format: BPF_ITER gives programs the raw iovecs"
BPF = "trace_events_user.c:user_event_bpf"
PERF = "trace_events_user.c:user_event_perf"
CORE = "trace_events_user.c:user_events_write_core"

# user_bpf_context.data_type.
IN_KERNEL = 0
IN_USER = 1
IN_IOVECS = 2
# Where write() has its data here, and writev() its parts, one behind the other.
DATA = 0x2000_0001_0000
INDEX = b"\0\0\0\0"
PAYLOAD = b"\x11\x22\x33\x44\x55\x66\x77\x88"
WRITTEN = INDEX + PAYLOAD


# One part: where it is


@case(
    "bpf_context.one_part",
    spec=BPF,
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
@variants(
    "parts, address",
    {
        "index_and_payload": ([WRITTEN], 0x2000_0001_0004),
        "index.payload": ([INDEX, PAYLOAD], 0x2000_0001_0100),
        "ind.ex.payload": ([b"\0\0\0", b"\0", PAYLOAD], 0x2000_0001_0200),
        "nothing.index.payload": ([b"", INDEX, PAYLOAD], 0x2000_0001_0200),
        "ind.ex_and_payload": ([b"\0", b"\0\0\0" + PAYLOAD], 0x2000_0001_0103),
    },
)
def test_one_part(ue: UserEvents, parts: list[bytes], address: int) -> None:
    """A payload that is in one part stays in the writer's memory: the program gets its address."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    recorder = Recorder(ue.process)
    assert recorder.attach(listen(ue.process, ue.name())).value == 0
    # Apart from each other, so that every part has an address of its own.
    places = [0x2000_0001_0000 + 0x100 * number for number in range(len(parts))]
    for place, part in zip(places, parts, strict=True):
        ue.process.store(place, part)
    vector = [(place, len(part)) for place, part in zip(places, parts, strict=True)]
    assert data.writev_at(vector).value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_USER, 8, address))
    assert seen.content[:8] == PAYLOAD


@case(
    "bpf_context.write",
    spec=BPF,
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
def test_write(ue: UserEvents) -> None:
    """write(), pwrite() and pwritev() of one part are the same to the program."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    recorder = Recorder(ue.process)
    recorder.attach(listen(ue.process, ue.name()))
    for written in (data.write(WRITTEN), data.pwrite(WRITTEN, 0), data.pwritev([WRITTEN], 77)):
        assert written.value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (3, (IN_USER, 8, DATA + 4))
    assert seen.content[:8] == PAYLOAD


@case(
    "bpf_context.end_of_memory",
    spec=BPF,
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    tier="full",
    facilities=("bpf_tracing",),
)
def test_end_of_memory(ue: UserEvents) -> None:
    """The program can read the payload to its last byte, behind which nothing is mapped."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    recorder = Recorder(ue.process)
    recorder.attach(listen(ue.process, ue.name()))
    # One page at the first free address.
    address = ue.process.place(WRITTEN)
    assert data.write_at(address, 12).value == 12
    seen = recorder.take()
    assert seen.context == (IN_USER, 8, 0x2000_2000_0FF8)
    assert seen.content[:8] == PAYLOAD


@case(
    "bpf_context.longer_payload",
    spec=BPF,
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    tier="full",
    facilities=("bpf_tracing",),
)
@variants("length", {"9": 9, "512": 512, "513": 513, "4096": 4096, "4097": 4097, "8176": 8176})
def test_longer_payload(ue: UserEvents, length: int) -> None:
    """The length is that of the payload, however long, where nothing is copied."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    recorder = Recorder(ue.process, room=length)
    recorder.attach(listen(ue.process, ue.name()))
    payload = b"x" * (length - 1) + b"."
    assert data.writev([INDEX, payload]).value == 4 + length
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_USER, length, DATA + 4))
    assert seen.content[:length] == payload


# Several parts: a copy


@case(
    "bpf_context.several_parts",
    spec=BPF,
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
@variants(
    "parts",
    {
        "index.pay.load": [INDEX, PAYLOAD[:3], PAYLOAD[3:]],
        "index_and_pay.load": [INDEX + PAYLOAD[:3], PAYLOAD[3:]],
        "each_byte": [bytes([each]) for each in WRITTEN],
        # A part behind the index counts, even one that holds nothing.
        "index.nothing.payload": [INDEX, b"", PAYLOAD],
        "index.payload.nothing": [INDEX, PAYLOAD, b""],
    },
)
def test_several_parts(ue: UserEvents, parts: list[bytes]) -> None:
    """A payload in several parts is copied: the program gets an address of the kernel."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    recorder = Recorder(ue.process)
    recorder.attach(listen(ue.process, ue.name()))
    assert data.writev(parts).value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_KERNEL, 8, KERNEL))
    assert seen.content[:8] == PAYLOAD


@case(
    "bpf_context.copy_length",
    spec=f"{BPF}: MAX_BPF_COPY_SIZE, MAX_STACK_BPF_DATA",
    doc=f"{RST}: Writing Data: nothing is said about a limit",
    profiles=BYTES,
    needs=NEEDS,
    tier="full",
    facilities=("bpf_tracing",),
)
@variants(
    "length, copied",
    {
        # One page at most; up to 512 bytes fit a buffer on the stack.
        "4097": (4097, 4096),
        "4096": (4096, 4096),
        "4095": (4095, 4095),
        "513": (513, 513),
        "512": (512, 512),
        "511": (511, 511),
        "8176": (8176, 4096),
    },
)
def test_copy_length(ue: UserEvents, length: int, copied: int) -> None:
    """Of a payload in several parts a page is copied at most, and that is the length told."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    recorder = Recorder(ue.process, room=copied)
    recorder.attach(listen(ue.process, ue.name()))
    payload = bytes(each % 251 for each in range(length))
    assert data.writev([INDEX, payload[:200], payload[200:]]).value == 4 + length
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_KERNEL, copied, KERNEL))
    assert seen.content[:copied] == payload[:copied]


# BPF_ITER: the iovecs


@case(
    "bpf_context.iterator",
    spec=BPF,
    doc=ITERATOR,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
@variants(
    "parts, offset, count, iovecs",
    {
        "index_and_pay.lo.ad": (
            [INDEX + PAYLOAD[:2], PAYLOAD[2:4], PAYLOAD[4:]],
            4,
            3,
            [(0x2000_0001_0000, 6), (0x2000_0001_0006, 2), (0x2000_0001_0008, 4)],
        ),
        "index_and_payload": ([WRITTEN], 4, 1, [(0x2000_0001_0000, 12)]),
        "index.payload": ([INDEX, PAYLOAD], 0, 1, [(0x2000_0001_0004, 8)]),
        "index.pay.load": (
            [INDEX, PAYLOAD[:3], PAYLOAD[3:]],
            0,
            2,
            [(0x2000_0001_0004, 3), (0x2000_0001_0007, 5)],
        ),
        "ind.ex_and_pay.load": (
            [b"\0\0\0", b"\0" + PAYLOAD[:3], PAYLOAD[3:]],
            1,
            2,
            [(0x2000_0001_0003, 4), (0x2000_0001_0007, 5)],
        ),
        "index.nothing.payload": (
            [INDEX, b"", PAYLOAD],
            0,
            2,
            [(0x2000_0001_0004, 0), (0x2000_0001_0004, 8)],
        ),
    },
)
def test_iterator(
    ue: UserEvents, parts: list[bytes], offset: int, count: int, iovecs: list[tuple[int, int]]
) -> None:
    """With the flag BPF_ITER programs get the iovecs that are left behind the write index."""
    data = ue.open_data()
    data.register(ue.name() + ":BPF_ITER u64 a")
    recorder = Recorder(ue.process, parts=count)
    recorder.attach(listen(ue.process, ue.name()))
    assert data.writev(parts).value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_IOVECS, 8, KERNEL))
    # The kernel's copy of the iovecs: not the array that was given to writev().
    assert seen.iterator == (offset, count, KERNEL)
    assert seen.iovecs == iovecs


@case(
    "bpf_context.iterator_of_write",
    spec=BPF,
    doc=ITERATOR,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
def test_iterator_of_write(ue: UserEvents) -> None:
    """write() has one iovec, of which the write index is the beginning."""
    data = ue.open_data()
    data.register(ue.name() + ":BPF_ITER u64 a")
    recorder = Recorder(ue.process, parts=1)
    recorder.attach(listen(ue.process, ue.name()))
    assert data.write(WRITTEN).value == 12
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_IOVECS, 8, KERNEL))
    assert seen.iterator == (4, 1, KERNEL)
    assert seen.iovecs == [(DATA, 12)]


@case(
    "bpf_context.iterator_length",
    spec=BPF,
    doc=ITERATOR,
    profiles=BYTES,
    needs=NEEDS,
    tier="full",
    facilities=("bpf_tracing",),
)
def test_iterator_length(ue: UserEvents) -> None:
    """Nothing is copied for an iterator: its length is that of the payload, beyond a page too."""
    data = ue.open_data()
    data.register(ue.name() + ":BPF_ITER u64 a")
    recorder = Recorder(ue.process, parts=2)
    recorder.attach(listen(ue.process, ue.name()))
    assert data.writev([INDEX, bytes(5000), bytes(100)]).value == 5104
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_IOVECS, 5100, KERNEL))
    assert seen.iovecs == [(DATA + 4, 5000), (DATA + 5004, 100)]


@case(
    "bpf_context.flag_of_creation",
    spec="trace_events_user.c:user_event_parse, user_event_parse_flags",
    doc=ITERATOR,
    profiles=BYTES,
    needs=NEEDS,
    tier="full",
    facilities=("bpf_tracing",),
)
@variants(
    "created, registered, kind",
    {
        "without": ("", ":BPF_ITER", 1),
        "with": (":BPF_ITER", "", 2),
        "with_another": (":OTHER", ":BPF_ITER", 1),
        "among_others": (":OTHER,BPF_ITER", ":OTHER", 2),
    },
)
def test_flag_of_creation(ue: UserEvents, created: str, registered: str, kind: int) -> None:
    """The flag counts where the event is made, here by dynamic_events, and nowhere else."""
    ue.tracefs.command(f"u:{ue.name()}{created} u64 a\n")
    data = ue.open_data()
    data.register(f"{ue.name()}{registered} u64 a")
    recorder = Recorder(ue.process)
    recorder.attach(listen(ue.process, ue.name()))
    data.write(WRITTEN)
    assert recorder.take().data_type == kind


# No payload


@case(
    "bpf_context.nothing",
    spec=f"{PERF}; {CORE}",
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
@variants(
    "flag, parts, context",
    {
        "index": ("", [INDEX], (0, 0, KERNEL)),
        "index.nothing": ("", [INDEX, b""], (1, 0, 0x2000_0001_0004)),
        "index.nothing.nothing": ("", [INDEX, b"", b""], (0, 0, KERNEL)),
        "iterator": (":BPF_ITER", [INDEX], (2, 0, KERNEL)),
        "iterator.nothing": (":BPF_ITER", [INDEX, b""], (2, 0, KERNEL)),
    },
)
def test_nothing(
    ue: UserEvents, flag: str, parts: list[bytes], context: tuple[int, int, int]
) -> None:
    """Where no payload is left the program runs, with whatever parts are left, though it fails."""
    data = ue.open_data()
    data.register(ue.name() + flag)
    recorder = Recorder(ue.process, room=0, parts=0)
    recorder.attach(listen(ue.process, ue.name()))
    # A copy of no bytes counts as one that failed, until 6.5.
    assert data.writev(parts).errno == "EFAULT"
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, context)
    if flag:
        assert seen.iterator == (0, len(parts) - 1, KERNEL)


# When programs run


@case(
    "bpf_context.not_validated",
    spec=f"{PERF}, user_event_validate",
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
def test_not_validated(ue: UserEvents) -> None:
    """Programs see what is refused behind them: EFAULT, but they have run."""
    data = ue.open_data()
    data.register(ue.name() + " __rel_loc char[] a")
    recorder = Recorder(ue.process, room=4)
    recorder.attach(listen(ue.process, ue.name()))
    # Five bytes where there are none.
    assert data.write(INDEX + b"\0\0\5\0").errno == "EFAULT"
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_USER, 4, DATA + 4))
    assert seen.content[:4] == b"\0\0\5\0"
    assert data.writev([INDEX, b"\0\0", b"\5\0"]).errno == "EFAULT"
    assert recorder.take().context == (IN_KERNEL, 4, KERNEL)


@case(
    "bpf_context.not_reached",
    spec=CORE,
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    tier="full",
    facilities=("bpf_tracing",),
)
def test_not_reached(ue: UserEvents) -> None:
    """What is refused before any listener is asked is not given to programs."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    recorder = Recorder(ue.process)
    recorder.attach(listen(ue.process, ue.name()))
    assert data.write(INDEX + PAYLOAD[:7]).errno == "EINVAL"
    assert data.write(b"\1\0\0\0" + PAYLOAD).errno == "ENOENT"
    assert data.write(INDEX[:3]).errno == "EFAULT"
    # Half of the payload is behind the end of memory.
    address = ue.process.place(INDEX + PAYLOAD[:4])
    assert data.write_at(address, 12).errno == "EFAULT"
    assert recorder.take().runs == 0


@case(
    "bpf_context.answer_ignored",
    spec=PERF,
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
@variants("answer", {"0": 0, "1": 1})
def test_answer_ignored(ue: UserEvents, answer: int) -> None:
    """Whatever a program answers perf gets its sample, unlike from tracepoints of the kernel."""
    data = ue.open_data()
    data.register(ue.name() + " u32 a")
    event = listen(ue.process, ue.name())
    recorder = Recorder(ue.process, room=4, answer=answer)
    recorder.attach(event)
    ring = event.map()
    assert data.write(INDEX + b"\x41\0\0\0").value == 8
    assert recorder.take().runs == 1
    assert event.count == 1
    assert ring.records() == ["SAMPLE misc 1 size 24 raw 12: 41 00 00 00"]


@case(
    "bpf_context.beside_ftrace",
    spec=f"{PERF}; {CORE}",
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
@variants("flag", {"with": ":BPF_ITER", "without": ""})
def test_beside_ftrace(ue: UserEvents, flag: str) -> None:
    """The program runs once for a write that ftrace and perf take too; the flag is not theirs."""
    data = ue.open_data()
    data.register(ue.name() + flag + " u64 a")
    event = listen(ue.process, ue.name())
    recorder = Recorder(ue.process, answer=0)
    recorder.attach(event)
    ue.tracefs.enable(ue.name())
    assert data.writev([INDEX, PAYLOAD[:3], PAYLOAD[3:]]).value == 12
    assert recorder.take().runs == 1
    assert ue.tracefs.records() == ["11 22 33 44 55 66 77 88"]
    assert event.count == 1
    # ftrace alone: nobody is left for whom it would run.
    event.close()
    assert data.write(WRITTEN).value == 12
    assert recorder.take().runs == 0
    assert ue.tracefs.records() == ["11 22 33 44 55 66 77 88"] * 2


@case(
    "bpf_context.event_not_counting",
    spec=PERF,
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    tier="full",
    facilities=("bpf_tracing",),
)
def test_event_not_counting(ue: UserEvents) -> None:
    """The program runs although its event of perf is disabled."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    event = listen(ue.process, ue.name(), Wish(disabled=True))
    recorder = Recorder(ue.process)
    recorder.attach(event)
    assert data.write(WRITTEN).value == 12
    assert recorder.take().context == (IN_USER, 8, DATA + 4)
    assert event.count == 0


@case(
    "bpf_context.other_process",
    spec=PERF,
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    tier="full",
    facilities=("bpf_tracing",),
)
def test_other_process(ue: UserEvents) -> None:
    """The program runs for every writer, also where its event of perf counts another process."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    event = listen(ue.process, ue.name())
    recorder = Recorder(ue.process)
    recorder.attach(event)
    other = ue.new_process().open_data()
    assert other.register(ue.name() + " u64 a").index == 0
    assert other.writev([INDEX, PAYLOAD]).value == 12
    seen = recorder.take()
    # An address of the other process, in whose memory the program runs.
    assert (seen.runs, seen.context) == (1, (IN_USER, 8, DATA + 4))
    assert seen.content[:8] == PAYLOAD
    assert event.count == 0


@case(
    "bpf_context.tracing_off",
    spec=PERF,
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    tier="full",
    isolation="global",
    facilities=("bpf_tracing",),
)
def test_tracing_off(ue: UserEvents) -> None:
    """tracing_on is a matter of ftrace: programs run without."""
    data = ue.open_data()
    data.register("e u64 a")
    recorder = Recorder(ue.process)
    recorder.attach(listen(ue.process, "e"))
    ue.tracefs.enable("e")
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "0\n")
    assert data.write(WRITTEN).value == 12
    assert recorder.take().runs == 1
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "1\n")
    assert ue.tracefs.records() == []


# Attaching and detaching


@case(
    "bpf_context.detached",
    spec="kernel/events/core.c:perf_event_free_bpf_prog",
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
def test_detached(ue: UserEvents) -> None:
    """A program stays attached without its own descriptor, until that of perf is closed."""
    data = ue.open_data()
    place = data.register(ue.name() + " u64 a").place
    event = listen(ue.process, ue.name())
    recorder = Recorder(ue.process)
    recorder.attach(event)
    ue.process.run(op.Close(ue.process.actor, recorder.program.slot))
    data.write(WRITTEN)
    assert recorder.take().runs == 1
    assert ue.tracefs.status() == ue.status_line(place, ue.name(), "perf")
    event.close()
    data.write(WRITTEN)
    assert recorder.take().runs == 0
    # The next event of perf has no program.
    listen(ue.process, ue.name())
    data.write(WRITTEN)
    assert recorder.take().runs == 0


@case(
    "bpf_context.two_programs",
    spec="kernel/trace/bpf_trace.c:perf_event_attach_bpf_prog, trace_call_bpf",
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
def test_two_programs(ue: UserEvents) -> None:
    """Programs of several events of perf all run, one event has one, and none is there twice."""
    data = ue.open_data()
    data.register(ue.name() + " u64 a")
    one, two = Recorder(ue.process), Recorder(ue.process, answer=0)
    first, second = listen(ue.process, ue.name()), listen(ue.process, ue.name())
    assert one.attach(first).errno == ""
    assert one.attach(second).errno == "EEXIST"
    assert two.attach(first).errno == "EEXIST"
    assert two.attach(second).errno == ""
    data.write(WRITTEN)
    assert (one.take().context, two.take().context) == ((IN_USER, 8, DATA + 4),) * 2
    first.close()
    data.write(WRITTEN)
    assert (one.take().runs, two.take().runs) == (0, 1)


@case(
    "bpf_context.only_its_event",
    spec=PERF,
    doc=EBPF,
    profiles=BYTES,
    needs=NEEDS,
    tier="full",
    facilities=("bpf_tracing",),
)
def test_only_its_event(ue: UserEvents) -> None:
    """A program runs on writes to the event it is attached to, not on those to another."""
    data = ue.open_data()
    data.register(ue.name("e") + " u64 a")
    data.register(ue.name("other") + " u64 a")
    recorder = Recorder(ue.process)
    recorder.attach(listen(ue.process, ue.name("e")))
    listen(ue.process, ue.name("other"))
    assert data.write(b"\1\0\0\0" + PAYLOAD).value == 12
    assert recorder.take().runs == 0
    assert data.write(WRITTEN).value == 12
    assert recorder.take().runs == 1


@case(
    "bpf_context.direct_access",
    spec="kernel/trace/bpf_trace.c:tp_prog_is_valid_access",
    doc=HEADER,
    profiles=BYTES,
    needs=NEEDS,
    facilities=("bpf_tracing",),
)
@variants(
    "size, offset, loaded",
    {
        "data_type": (Size.W, 0, "EACCES"),
        "data_len": (Size.W, 4, "EACCES"),
        "both": (Size.DW, 0, "EACCES"),
        "pointer": (Size.DW, 8, ""),
    },
)
def test_direct_access(ue: UserEvents, size: Size, offset: int, loaded: str) -> None:
    """A program may not load type and length: tracepoints keep the first eight bytes."""
    data = ue.open_data()
    data.register(ue.name("long") + " u64 a")
    data.register(ue.name("short") + " u32 a")
    instructions = [ldx_mem(size, R0, R1, offset), exit_insn()]
    program = Bpf(ue.process).load(instructions, ProgramType.TRACEPOINT)
    assert program.errno == loaded
    if not loaded:
        # A load has to lie within the fields of the event: 8 bytes of common ones, then u32.
        assert listen(ue.process, ue.name("short")).set_program(program.slot).errno == "EACCES"
        assert listen(ue.process, ue.name("long")).set_program(program.slot).errno == ""
        assert data.write(WRITTEN).value == 12
