"""Kprobe programs: when they run, what they return, and when they are detached.

They are attached to a perf event with PERF_EVENT_IOC_SET_BPF, and run when the probed function is
called: here by a write(2) to user_events_data.
"""

from conformance import ops
from conformance.cases.case import UserEvents, doc, surface, variants
from conformance.cases.support.kprobes import (
    PLAIN,
    SAMPLE,
    add_kprobe,
    call_function,
    listen_to,
    load_counting,
    runs_of,
)
from conformance.cases.support.perf_samples import without_raw
from conformance.client.bpf import Bpf

case = surface(
    "bpf",
    spec="trace_kprobe.c:kprobe_perf_func",
    doc="include/uapi/linux/bpf.h@v4.1:bpf_prog_type",
    level="detail",
    tier="full",
    isolation="global",
    facilities="bpf_tracing kprobes",
)


@case(switch="perf-program-runs-twice")
@doc("BPF_PROG_TYPE_KPROBE: 0 ignores the event, anything else stores it")
@variants(("1", 1, 1), ("7", 7, 1), ("minus-1", -1, 1), ("0", 0, 0))
def test_kprobe_stores(ue: UserEvents, answer: int, samples: int) -> None:
    """A kprobe program that returns 0 suppresses the event; any other value records it."""
    data, name = ue.open_data(), add_kprobe(ue)
    event = listen_to(ue.process, name, PLAIN)
    ring = event.map()
    call_function(data)
    sample = without_raw(ue, SAMPLE, record=16)
    assert ring.records() == [sample]
    program, counts = load_counting(Bpf(ue.process), answer=answer)
    assert program.errno == ""
    assert event.set_program(program.slot).value == 0
    call_function(data)
    # One that is suppressed is no sample.
    assert runs_of(counts) == ue.bug("perf-program-runs-twice", fixed=1, present=1 + samples)
    assert ring.records() == [sample] + [sample] * samples
    assert event.count == 1 + samples


@case(spec="kernel/events/core.c:perf_event_free_bpf_prog")
@doc("closing the event of perf takes the program off")
def test_kprobe_detaches(ue: UserEvents) -> None:
    """Closing the perf event detaches its program, which no longer runs though it is loaded."""
    data, name = ue.open_data(), add_kprobe(ue)
    program, counts = load_counting(Bpf(ue.process))
    other = listen_to(ue.process, name)
    event = listen_to(ue.process, name)
    event.set_program(program.slot)
    call_function(data)
    assert (runs_of(counts), other.count) == (1, 1)
    event.close()
    call_function(data)
    # The kprobe still exists, and is hit.
    assert (runs_of(counts), other.count) == (1, 2)
    assert other.set_program(program.slot).value == 0
    call_function(data)
    assert runs_of(counts) == 2


@case(spec="kernel/events/core.c:__perf_event_set_bpf_prog")
@doc("include/uapi/linux/perf_event.h@v6.12: PERF_EVENT_IOC_SET_BPF takes the descriptor")
@doc("of a program, and keeps it")
def test_kprobe_keeps_program(ue: UserEvents) -> None:
    """A program still runs after its descriptor is closed, as long as its perf event is open."""
    data, name = ue.open_data(), add_kprobe(ue)
    program, counts = load_counting(Bpf(ue.process))
    listen_to(ue.process, name).set_program(program.slot)
    ue.process.run(ops.Close(ue.process.actor, program.slot))
    call_function(data)
    call_function(data)
    assert runs_of(counts) == 2


@case(spec="kernel/trace/bpf_trace.c:perf_event_attach_bpf_prog")
@doc("include/uapi/linux/perf_event.h@v6.12: PERF_EVENT_IOC_SET_BPF takes the descriptor")
@doc("of one program")
def test_kprobe_twice(ue: UserEvents) -> None:
    """A perf event takes one program, a kprobe the same program once: then EEXIST."""
    data, name = ue.open_data(), add_kprobe(ue)
    system = Bpf(ue.process)
    program, counts = load_counting(system)
    another, _ = load_counting(system)
    event, other = listen_to(ue.process, name), listen_to(ue.process, name)
    assert event.set_program(program.slot).value == 0
    assert event.set_program(program.slot).errno == "EEXIST"
    assert event.set_program(another.slot).errno == "EEXIST"
    assert other.set_program(program.slot).errno == "EEXIST"
    call_function(data)
    assert runs_of(counts) == 1


@case(spec="kernel/trace/bpf_trace.c:trace_call_bpf")
@doc("silent about several programs on one kprobe")
def test_kprobe_two_programs(ue: UserEvents) -> None:
    """All programs of a kprobe run at each hit; one that returns 0 suppresses all events."""
    data, name = ue.open_data(), add_kprobe(ue)
    system = Bpf(ue.process)
    stores, stored = load_counting(system, answer=1)
    ignores, ignored = load_counting(system, answer=0)
    first, second = listen_to(ue.process, name), listen_to(ue.process, name)
    first.set_program(stores.slot)
    call_function(data)
    assert (first.count, second.count) == (1, 1)
    second.set_program(ignores.slot)
    call_function(data)
    assert (runs_of(stored), runs_of(ignored)) == (2, 1)
    assert (first.count, second.count) == (1, 1)
    second.close()
    call_function(data)
    assert (runs_of(stored), runs_of(ignored), first.count) == (3, 1, 2)


@case(doc="a program runs when the kprobe is hit, by whatever process")
def test_kprobe_everybody(ue: UserEvents) -> None:
    """A program runs for hits by any process, whatever process its perf event follows."""
    name = add_kprobe(ue)
    event = listen_to(ue.process, name)
    program, counts = load_counting(Bpf(ue.process))
    event.set_program(program.slot)
    event.disable()
    call_function(ue.new_process().open_data())
    call_function(ue.open_data())
    assert (runs_of(counts), event.count) == (2, 0)


@case(doc="a program runs when its kprobe is hit")
def test_kprobe_apart(ue: UserEvents) -> None:
    """A program runs only for calls of its function: ioctl and writev do not hit it here."""
    data, name = ue.open_data(), add_kprobe(ue)
    event = listen_to(ue.process, name)
    program, counts = load_counting(Bpf(ue.process))
    event.set_program(program.slot)
    data.register(ue.name())
    data.writev([b"\0\0", b"\0\0"])
    assert runs_of(counts) == 0
    # Called, and rejected by the function itself.
    assert data.pwrite(b"\0\0\0\0", 8).errno == "EFAULT"
    assert runs_of(counts) == 1
    # Rejected before the call.
    assert data.write_at(0xFFFF_8000_0000_0000, 4).errno == "EFAULT"
    assert runs_of(counts) == 1
