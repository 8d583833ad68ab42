"""Attaching BPF programs to user events in the merge window of 5.18."""

from __future__ import annotations

from conformance import ops
from conformance.abi.bpf import ProgramType
from conformance.cases.case import surface, variants
from conformance.cases.support.bpf_context import DATA, IN_USER, PAYLOAD, WRITTEN
from conformance.cases.support.bpf_recorder import Recorder
from conformance.client.bpf import Bpf
from conformance.client.perf import listen
from conformance.client.user_events import UserEvents
from conformance.ops.bpf_assembler import R0, R1, Size, exit_insn, ldx_mem

case = surface(
    "bpf_context",
    spec="kernel/trace/bpf_trace.c",
    doc="Documentation/trace/user_events.rst@merge-window: Writing Data: programs are given a "
    "struct user_bpf_context",
    profiles="5.18..6.0",
    needs="bpf_programs_run perf_sink",
    facilities="bpf_tracing",
)


@case(spec="kernel/events/core.c:perf_event_free_bpf_prog")
def test_detached(ue: UserEvents) -> None:
    """A program stays attached without its own descriptor, until the perf event is closed."""
    data = ue.open_data()
    place = data.register(ue.name() + " u64 a").place
    event = listen(ue.process, ue.name())
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
    listen(ue.process, ue.name())
    data.write(WRITTEN)
    assert recorder.take().runs == 0


@case(spec="perf_event_attach_bpf_prog, trace_call_bpf")
def test_two_programs(ue: UserEvents) -> None:
    """Programs of several perf events all run; one event has one, and none is attached twice."""
    data = ue.event("u64 a").data
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


@case(spec="trace_events_user.c:user_event_perf", tier="full")
def test_only_its_event(ue: UserEvents) -> None:
    """A program runs for writes of its own event, not of another."""
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
    spec="tp_prog_is_valid_access",
    doc="include/linux/user_events.h@merge-window: struct user_bpf_context",
)
@variants(
    ("data_type", Size.W, 0, "EACCES"),
    ("data_len", Size.W, 4, "EACCES"),
    ("both", Size.DW, 0, "EACCES"),
    ("pointer", Size.DW, 8, ""),
)
def test_direct_access(ue: UserEvents, size: Size, offset: int, loaded: str) -> None:
    """A program may not load type and length: tracepoints reserve the first eight bytes."""
    data = ue.open_data()
    data.register(ue.name("long") + " u64 a")
    data.register(ue.name("short") + " u32 a")
    instructions = [ldx_mem(size, R0, R1, offset), exit_insn()]
    program = Bpf(ue.process).load(instructions, ProgramType.TRACEPOINT)
    assert program.errno == loaded
    if not loaded:
        # A load must lie within the fields of the event: 8 bytes of common ones, then u32.
        assert listen(ue.process, ue.name("short")).set_program(program.slot).errno == "EACCES"
        assert listen(ue.process, ue.name("long")).set_program(program.slot).errno == ""
        assert data.write(WRITTEN).value == 12
