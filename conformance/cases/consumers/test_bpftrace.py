"""bpftrace attaches to user events, and its programs never run."""

from conformance.cases.case import UserEvents, surface
from conformance.cases.support.consumers import BPFTRACE
from conformance.client.programs import Programs

case = surface(
    "consumers",
    spec="kernel/events/core.c:__perf_event_set_bpf_prog",
    doc="@v6.12: silent about BPF",
    level="detail",
    tier="full",
    programs="bpftrace",
    facilities="bpf_tracing",
    without="bpf_programs_run",
    bug="bpf-never-runs",
)

REFUSED = "Attaching 1 probe...\nioctl(PERF_EVENT_IOC_SET_BPF): Invalid argument\n"


@case
def test_bpftrace(ue: UserEvents) -> None:
    """`bpftrace` on a user event is refused; with the bug it attaches and prints nothing."""
    programs = Programs(ue, ue.process)
    event = ue.event("unsigned int a")
    error = REFUSED + "ERROR: Error attaching probe: tracepoint:user_events:" + ue.name() + "\n"
    refused = ue.bug("bpf-never-runs", fixed=error, present="")
    assert BPFTRACE.start(programs, event.name, refused=refused).text == refused
    if not refused:
        event.write(bytes(4))
        BPFTRACE.stop(programs, event.name)
        silent = "Attaching 1 probe...\n\n\n"
        assert BPFTRACE.shows(programs, silent) == silent
