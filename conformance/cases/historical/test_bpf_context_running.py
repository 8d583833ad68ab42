"""BPF programs on user events in the merge window of 5.18: how they are attached, when they run."""

from conformance import ops
from conformance.abi.bpf import ProgramType
from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.bpf_context import DATA, IN_KERNEL, IN_USER, INDEX, PAYLOAD, WRITTEN
from conformance.cases.support.bpf_recorder import KERNEL, Recorder
from conformance.client.bpf import Bpf
from conformance.client.perf import PerfAttr, open_perf
from conformance.ops.bpf_assembler import exit_insn, ldx_mem
from conformance.ops.bpf_opcodes import R0, R1, Size

case = surface(
    "bpf_context",
    spec="user_event_perf",
    doc="@merge-window: Writing Data: programs are given a struct "
    "user_bpf_context; silent about when",
    level="behaviour",
    profiles="5.18..6.0",
    needs="bpf_programs_run perf_sink",
    facilities="bpf_tracing",
)


@case(spec="user_event_perf, user_event_validate")
def test_not_validated(ue: UserEvents) -> None:
    """Programs run before a payload is validated: the write is EFAULT, but they have run."""
    data = ue.event("__rel_loc char[] a").data
    recorder = Recorder.attached(ue, room=4)
    # Five bytes where there are none.
    assert data.write(INDEX + b"\0\0\5\0").errno == "EFAULT"
    seen = recorder.take()
    assert (seen.runs, seen.context) == (1, (IN_USER, 4, DATA + 4))
    assert seen.content[:4] == b"\0\0\5\0"
    assert data.writev([INDEX, b"\0\0", b"\5\0"]).errno == "EFAULT"
    assert recorder.take().context == (IN_KERNEL, 4, KERNEL)


@case(spec="user_events_write_core", tier="full")
def test_not_reached(ue: UserEvents) -> None:
    """A write that fails before any tracer is called does not run programs."""
    data = ue.event("u64 a").data
    recorder = Recorder.attached(ue)
    assert data.write(INDEX + PAYLOAD[:7]).errno == "EINVAL"
    assert data.write(b"\1\0\0\0" + PAYLOAD).errno == "ENOENT"
    assert data.write(INDEX[:3]).errno == "EFAULT"
    # Half of the payload is past the end of the mapping.
    address = ue.process.place(INDEX + PAYLOAD[:4])
    assert data.write_at(address, 12).errno == "EFAULT"
    assert recorder.take().runs == 0


@case
@variants(0, 1)
def test_answer_ignored(ue: UserEvents, answer: int) -> None:
    """Whatever a program returns, perf gets its sample, unlike from kernel tracepoints."""
    data = ue.event("u32 a").data
    event = open_perf(ue.process, ue.name())
    recorder = Recorder(ue.process, room=4, answer=answer)
    recorder.attach(event)
    ring = event.map()
    assert data.write(INDEX + b"\x41\0\0\0").value == 8
    assert recorder.take().runs == 1
    assert event.count == 1
    assert ring.records() == ["SAMPLE misc 1 size 24 raw 12: 41 00 00 00"]


@case(spec="user_event_perf; trace_events_user.c:user_events_write_core")
@variants({"with": ":BPF_ITER", "without": ""})
def test_beside_ftrace(ue: UserEvents, flag: str) -> None:
    """The program runs once for a write that ftrace and perf also record."""
    data = ue.register(ue.name() + flag + " u64 a")
    event = open_perf(ue.process, ue.name())
    ring = event.map()
    recorder = Recorder(ue.process, answer=0)
    recorder.attach(event)
    ue.tracefs.enable(ue.name())
    assert data.writev([INDEX, PAYLOAD[:3], PAYLOAD[3:]]).value == 12
    assert recorder.take().runs == 1
    assert ue.tracefs.records() == ["11 22 33 44 55 66 77 88"]
    assert ring.records() == ["SAMPLE misc 1 size 32 raw 20: 11 22 33 44 55 66 77 88 00 00 00 00"]
    assert event.count == 1
    # ftrace alone: no perf event is left for which it would run.
    ring.unmap()
    event.close()
    assert data.write(WRITTEN).value == 12
    assert recorder.take().runs == 0
    assert ue.tracefs.records() == ["11 22 33 44 55 66 77 88"] * 2


@case(tier="full")
def test_event_not_counting(ue: UserEvents) -> None:
    """The program runs even if its perf event is disabled."""
    data = ue.event("u64 a").data
    event = open_perf(ue.process, ue.name(), PerfAttr(disabled=True))
    recorder = Recorder(ue.process)
    recorder.attach(event)
    assert data.write(WRITTEN).value == 12
    assert recorder.take().context == (IN_USER, 8, DATA + 4)
    assert event.count == 0


@case(tier="full")
def test_other_process(ue: UserEvents) -> None:
    """The program runs for every writer, even if its perf event counts another process."""
    ue.event("u64 a")
    event = open_perf(ue.process, ue.name())
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


@case(tier="full", isolation="global")
def test_tracing_off(ue: UserEvents) -> None:
    """tracing_on applies to ftrace: programs run without it."""
    data = ue.register("e u64 a")
    recorder = Recorder(ue.process)
    recorder.attach(open_perf(ue.process, "e"))
    ue.tracefs.enable("e")
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "0\n")
    assert data.write(WRITTEN).value == 12
    assert recorder.take().runs == 1
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "1\n")
    assert ue.tracefs.records() == []


@case(spec="kernel/events/core.c:perf_event_free_bpf_prog", level="detail")
def test_detached(ue: UserEvents) -> None:
    """A program stays attached without its own descriptor, until the perf event is closed."""
    data = ue.open_data()
    place = data.register(ue.name() + " u64 a").place
    event = open_perf(ue.process, ue.name())
    recorder = Recorder(ue.process)
    recorder.attach(event)
    ue.process.run(ops.Close(ue.process.actor, recorder.program.slot))
    data.write(WRITTEN)
    assert recorder.take().runs == 1
    assert ue.tracefs.status() == ue.status_line(place, ue.name(), "perf")
    event.close()
    data.write(WRITTEN)
    assert recorder.take().runs == 0
    # The next perf event has no program.
    open_perf(ue.process, ue.name())
    data.write(WRITTEN)
    assert recorder.take().runs == 0


@case(spec="kernel/trace/bpf_trace.c:perf_event_attach_bpf_prog, trace_call_bpf", level="detail")
def test_two_programs(ue: UserEvents) -> None:
    """Programs of several perf events all run; one event has one, and none is attached twice."""
    data = ue.event("u64 a").data
    one, two = Recorder(ue.process), Recorder(ue.process, answer=0)
    first, second = open_perf(ue.process, ue.name()), open_perf(ue.process, ue.name())
    assert (one.attach(first).errno, one.attach(second).errno) == ("", "EEXIST")
    assert (two.attach(first).errno, two.attach(second).errno) == ("EEXIST", "")
    data.write(WRITTEN)
    assert (one.take().context, two.take().context) == ((IN_USER, 8, DATA + 4),) * 2
    first.close()
    data.write(WRITTEN)
    assert (one.take().runs, two.take().runs) == (0, 1)


@case(tier="full")
def test_only_its_event(ue: UserEvents) -> None:
    """A program runs for writes of its own event, not of another."""
    data = ue.register(e="u64 a", other="u64 a")
    recorder = Recorder(ue.process)
    recorder.attach(open_perf(ue.process, ue.name("e")))
    open_perf(ue.process, ue.name("other"))
    assert data.write(b"\1\0\0\0" + PAYLOAD).value == 12
    assert recorder.take().runs == 0
    assert data.write(WRITTEN).value == 12
    assert recorder.take().runs == 1


@case(spec="kernel/trace/bpf_trace.c:tp_prog_is_valid_access", level="detail")
@doc("include/linux/user_events.h@merge-window: struct user_bpf_context")
@variants(
    ("data_type", Size.W, 0, "EACCES"),
    ("data_len", Size.W, 4, "EACCES"),
    ("both", Size.DW, 0, "EACCES"),
    ("pointer", Size.DW, 8, ""),
)
def test_direct_access(ue: UserEvents, size: Size, offset: int, loaded: str) -> None:
    """A program may not load type and length: tracepoints reserve the first eight bytes."""
    data = ue.register(long="u64 a", short="u32 a")
    instructions = [ldx_mem(size, R0, R1, offset), exit_insn()]
    program = Bpf(ue.process).load(instructions, ProgramType.TRACEPOINT)
    assert program.errno == loaded
    if not loaded:
        # A load must lie within the fields of the event: 8 bytes of common ones, then u32.
        assert open_perf(ue.process, ue.name("short")).set_program(program.slot).errno == "EACCES"
        assert open_perf(ue.process, ue.name("long")).set_program(program.slot).errno == ""
        assert data.write(WRITTEN).value == 12
