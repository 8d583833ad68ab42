"""Tasks in a PID namespace."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.doomed_event import process_with_event
from conformance.client.credentials import Credentials
from conformance.client.perf import RAW, TID, PerfAttr, open_perf
from conformance.client.tasks import Task, first_task
from conformance.ops import WriteFile
from conformance.ops.credentials import CLONE_NEWPID

case = surface("pid_namespace", level="detail", tier="full")

ONLY, BUT = "set_event_pid", "set_event_notrace_pid"


def namespace(ue: UserEvents) -> tuple[Task, Task]:
    """A new PID namespace: its creator, which stays outside, and its process 1."""
    outside = first_task(ue)
    assert Credentials(outside).unshare(CLONE_NEWPID).errno == ""
    return outside, outside.fork_task()


@case(spec="current_user_event_group: there is one for all", level="behaviour", profiles="6.4..")
@doc("Registering: silent about namespaces of process ids")
def test_registers(ue: UserEvents) -> None:
    """An event registered in a PID namespace is global, and its enable word is followed."""
    _, first = namespace(ue)
    data = first.open_data()
    word = data.register(f"{ue.name()} u32 a", bit=3).word
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    ue.tracefs.enable(ue.name())
    assert word.value == 8
    assert data.write_event(0, b"\1\0\0\0").value == 8
    assert ue.tracefs.records() == [ue.line("a=0x1 (1)")]
    event = ue.event("u32 a", bit=1)
    assert (event.index, event.word.value) == (0, 2)


@case(doc="ftrace.rst@v6.12: set_event_pid: says nothing of namespaces", isolation="global")
@spec("trace_events.c:trace_event_ignore_this_pid: current->pid, of the first namespace")
@variants(("only", ONLY, False), ("but", BUT, True))
def test_lists_of_processes(ue: UserEvents, file: str, recorded: bool) -> None:
    """When process 1 of a namespace writes 1 to a PID list it names the global PID 1."""
    _, first = namespace(ue)
    data = ue.event("u32 a", of=first).data
    written = WriteFile(first.actor, ue.tracefs.path(file), b"1", os.O_WRONLY)
    assert first.run(written).value == 1
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, b"\1\0\0\0").value == 8
    records = ue.tracefs.records()
    ue.tracefs.write(ue.tracefs.path(file), "\n", os.O_WRONLY | os.O_TRUNC)
    assert records == ([ue.line("a=0x1 (1)", dump="01 00 00 00")] if recorded else [])


@case(spec="kernel/trace/trace.c:tracing_gen_ctx_irq_test; trace_event_setup: current->pid")
@doc("events.rst@v6.12: common_pid: says nothing of namespaces")
@variants(("same", "common_pid == 1", False), ("greater", "common_pid > 1", True))
def test_filtered(ue: UserEvents, text: str, recorded: bool) -> None:
    """A record of process 1 of a namespace has its PID in the initial namespace."""
    _, first = namespace(ue)
    data = ue.event("u32 a", of=first).data
    assert ue.tracefs.directory(ue.name()).set_filter(text).errno == ""
    ue.tracefs.enable(ue.name())
    assert data.write_event(0, b"\1\0\0\0").value == 8
    line = [ue.line("a=0x1 (1)", dump="01 00 00 00")]
    assert ue.tracefs.records() == (line if recorded else [])


@case(needs="perf_sink", facilities="perf")
@spec("kernel/events/core.c:perf_event_pid_type: the namespace in which it was opened")
@doc("include/uapi/linux/perf_event.h@v6.12: PERF_SAMPLE_TID: pid and tid")
def test_perf_sample(ue: UserEvents) -> None:
    """A perf sample has the PID in the opener's namespace, its raw record the global PID."""
    _, first = namespace(ue)
    data = ue.event("u32 a", of=first).data
    ring = open_perf(first, ue.name(), PerfAttr(sample_type=TID | RAW)).map()
    assert data.write_event(0, b"\1\0\0\0").value == 8
    expected = "SAMPLE misc 1 size 32 one thread raw 12 of process 1: 01 00 00 00"
    assert ring.lines() == ["head 32 tail 0", expected]


@case(level="behaviour", profiles="6.4..", needs="auto_delete")
@spec("user_event_mm_remove; kernel/pid_namespace.c:zap_pid_ns_processes")
@doc("Deleting: an event is deleted when no references are left; silent about namespaces")
@variants({"killed": True, "exits": False})
def test_process_1_ends(ue: UserEvents, killed: bool) -> None:
    """When process 1 of a namespace exits, its processes and their events go with it."""
    outside, first = namespace(ue)
    second = outside.fork_task()
    outside.open_data().register(ue.name("kept"))
    first.open_data().register(ue.name("first"))
    second.open_data().register(ue.name("second"))
    process_with_event(ue).exit()
    assert first.kill().value == 0 if killed else first.exit().value == 0
    assert ue.tracefs.status(eventually=True) == ue.name("kept") + "\n"
