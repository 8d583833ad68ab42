"""BPF programs on user events: attached to a perf event, and never run.

The context that the first proposals defined for them was removed before 5.18.
"""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.kprobes import (
    KPROBE,
    SOCKET_FILTER,
    TRACEPOINT,
    load_counting,
    returning,
    runs_of,
)
from conformance.cases.support.perf_samples import A_SAMPLE, A, with_perf, with_ring
from conformance.cases.support.status_text import used_by
from conformance.client.bpf import Bpf
from conformance.client.perf import COUNTING, open_perf

case = surface("perf", level="detail", tier="full", facilities="bpf_tracing")


@case(
    needs="perf_sink",
    without="bpf_programs_run",
    switch="bpf-never-runs",
    bug="perf-program-runs-twice",
)
@spec("user_event_perf, which calls no program")
@doc("silent about BPF; linux/user_events.h@v5.18 has nothing about it any more")
@variants(0, 1)
def test_bpf_never_runs(ue: UserEvents, answer: int) -> None:
    """A program cannot be attached to a user event, or it never runs and has no effect."""
    event, perf, ring = with_ring(ue)
    program, counts = load_counting(Bpf(ue.process), TRACEPOINT, answer=answer)
    assert program.errno == ""
    attached = perf.set_program(program.slot)
    assert attached.errno == ue.bug("bpf-never-runs", fixed="EINVAL", present="")
    assert (event.write(A).value, event.data.writev([b"\0\0\0\0", A]).value) == (8, 8)
    twice = "perf-program-runs-twice"
    assert runs_of(counts) == ue.bug(twice, fixed=0, present=2)
    samples = [A_SAMPLE, A_SAMPLE]
    assert ring.records() == ue.bug(twice, fixed=samples, present=samples if answer else [])
    assert perf.count == 2


@case(spec="kernel/events/core.c:__perf_event_set_bpf_prog")
@doc("include/uapi/linux/perf_event.h@v6.12: PERF_EVENT_IOC_SET_BPF takes a program for events")
@variants({"kprobe": KPROBE, "socket_filter": SOCKET_FILTER})
def test_bpf_wrong_program(ue: UserEvents, kind: int) -> None:
    """A kprobe or socket filter program is EINVAL for a user event, which is a tracepoint."""
    ue.event("u32 a")
    event = open_perf(ue.process, ue.name())
    program = Bpf(ue.process).load(returning(1), kind)
    assert program.errno == ""
    assert event.set_program(program.slot).errno == "EINVAL"


@case(needs="perf_sink", without="bpf_programs_run", bug="bpf-never-runs")
@spec("kernel/trace/bpf_trace.c:perf_event_attach_bpf_prog")
@doc("include/uapi/linux/perf_event.h@v6.12: PERF_EVENT_IOC_SET_BPF takes one program")
def test_bpf_twice(ue: UserEvents) -> None:
    """A program is attached to a user event once, and a perf event has one: then EEXIST."""
    attached = ue.bug("bpf-never-runs", fixed="EINVAL", present="")
    refused = ue.bug("bpf-never-runs", fixed="EINVAL", present="EEXIST")
    event, first = with_perf(ue, attr=COUNTING)
    second = open_perf(ue.process, ue.name(), COUNTING)
    program, counts = load_counting(Bpf(ue.process), TRACEPOINT)
    another = Bpf(ue.process).load(returning(0), TRACEPOINT)
    assert first.set_program(program.slot).errno == attached
    assert first.set_program(another.slot).errno == refused
    assert second.set_program(program.slot).errno == refused
    assert second.set_program(another.slot).errno == attached
    assert event.write(A).value == 8
    first.close()
    assert second.set_program(program.slot).errno == refused
    assert event.write(A).value == 8
    assert runs_of(counts) == 0
    assert second.count == 2


@case(spec="user_seq_show", needs="perf_sink", bug="bpf-never-runs", doc="Status: silent about BPF")
def test_bpf_and_status(ue: UserEvents) -> None:
    """A program does not change the status: perf uses the event, until it is closed."""
    ue.event()
    event = open_perf(ue.process, ue.name())
    program = Bpf(ue.process).load(returning(1), TRACEPOINT)
    attached = event.set_program(program.slot)
    if not ue.profile.has("bpf_programs_run"):
        assert attached.errno == ue.bug("bpf-never-runs", fixed="EINVAL", present="")
    assert used_by(ue) == "perf"
    event.close()
    assert used_by(ue) == ""


@case(without="perf_sink", tier="quick", bug="bpf-never-runs")
@doc("include/uapi/linux/perf_event.h@v6.12: PERF_EVENT_IOC_SET_BPF takes one program")
@spec("kernel/events/core.c:__perf_event_set_bpf_prog;")
@spec("trace_events_user.c:user_event_reg, which leaves perf's requests alone")
def test_bpf_without_sink(ue: UserEvents) -> None:
    """A kernel whose user events lack perf accepts programs, counts nothing and runs none."""
    event, perf, ring = with_ring(ue)
    program, counts = load_counting(Bpf(ue.process), TRACEPOINT)
    attached = perf.set_program(program.slot)
    assert attached.errno == ue.bug("bpf-never-runs", fixed="EINVAL", present="")
    again = perf.set_program(program.slot)
    assert again.errno == ue.bug("bpf-never-runs", fixed="EINVAL", present="EEXIST")
    ue.tracefs.enable(ue.name())
    assert event.write(A).value == 8
    assert runs_of(counts) == 0
    assert ring.lines() == ["head 0 tail 0"]
    assert perf.count == 0
