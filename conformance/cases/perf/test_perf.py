"""perf as a tracer: enable words, status, and references."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.perf_samples import with_ring
from conformance.cases.support.status_page import map_page
from conformance.cases.support.status_text import used_by, whole_status
from conformance.client.perf import COUNTING, PerfAttr, open_perf

DOC = "Status: the bit is updated as tools attach to the event and detach from it"
USED_BY = "Status: the comment of a line may name ftrace; silent about perf"
case = surface("perf", doc=DOC, level="behaviour", tier="full", facilities="perf")

# perf_event_attr of a tool that enables its events later.
STOPPED = PerfAttr(disabled=True)


@case(spec="update_enable_bit_for", level="contract", profiles="6.4..", tier="quick")
@variants({"sampling": PerfAttr(), "counting": COUNTING, "disabled": STOPPED})
def test_enable_word(ue: UserEvents, attr: PerfAttr) -> None:
    """The bit is set from perf_event_open to close, whether perf counts or not."""
    registered = ue.open_data().register(ue.name() + " u32 a", bit=3)
    seen = [registered.word.value]
    event = open_perf(ue.process, ue.name(), attr)
    seen.append(registered.word.value)
    event.enable()
    event.disable()
    seen.append(registered.word.value)
    event.close()
    seen.append(registered.word.value)
    assert seen == [0, 8, 8, 0]


@case(spec="update_reg_page_for", level="contract", profiles="5.18..6.3", tier="quick")
@doc("@v5.19 and @v6.1: Status: EVENT_STATUS_PERF is bit 1 of the byte;")
@doc("since 6.1 one bit is set if anything is attached")
@variants({"sampling": PerfAttr(), "counting": COUNTING, "disabled": STOPPED})
def test_status_page(ue: UserEvents, attr: PerfAttr) -> None:
    """perf is 2 in a status byte, and 3 together with ftrace; since 6.1 one bit stands for any."""
    page = map_page(ue.process)
    place = ue.open_data().register(ue.name() + " u32 a").place
    seen = [page.shows(place)]
    event = open_perf(ue.process, ue.name(), attr)
    seen.append(page.shows(place))
    ue.tracefs.enable(ue.name())
    seen.append(page.shows(place))
    event.close()
    seen.append(page.shows(place))
    event = open_perf(ue.process, ue.name(), attr)
    ue.tracefs.disable(ue.name())
    seen.append(page.shows(place))
    event.close()
    seen.append(page.shows(place))
    # The first commit has no perf support.
    bytes_ = ue.dated("perf_sink", since=[0, 2, 3, 1, 2, 0], before=[0, 0, 1, 1, 0, 0])
    bits = [0, 1, 1, 1, 1, 0]
    assert seen == {"byte-status": bytes_, "bit-status": bits}[ue.profile.generation]


@case(spec="user_seq_show", doc=USED_BY, tier="quick", isolation="global")
def test_status_text(ue: UserEvents) -> None:
    """While both use the event, user_events_status names perf after ftrace, and counts it once."""
    ue.open_data().register(ue.name())
    event = open_perf(ue.process, ue.name())
    lines = ue.dated(
        "perf_sink",
        since=ue.status_line(1, ue.name(), "perf") + "\nActive: 1\nBusy: 1\n",
        before=ue.status_line(1, ue.name()) + "\nActive: 1\nBusy: 0\n",
    )
    assert whole_status(ue) == lines
    ue.tracefs.enable(ue.name())
    both = ue.dated("perf_sink", since="ftrace perf", before="ftrace")
    assert whole_status(ue) == ue.status_line(1, ue.name(), both) + "\nActive: 1\nBusy: 1\n"
    event.close()
    assert whole_status(ue) == ue.status_line(1, ue.name(), "ftrace") + "\nActive: 1\nBusy: 1\n"
    event = open_perf(ue.process, ue.name())
    assert whole_status(ue) == ue.status_line(1, ue.name(), both) + "\nActive: 1\nBusy: 1\n"
    event.close()
    ue.tracefs.disable(ue.name())
    assert whole_status(ue) == ue.status_line(1, ue.name()) + "\nActive: 1\nBusy: 0\n"


@case(spec="user_event_reg; trace_event_perf.c:perf_trace_event_reg", doc=USED_BY)
def test_two_listeners(ue: UserEvents) -> None:
    """perf uses the event until its last perf event is closed, by any process."""
    ue.event()
    other = ue.new_process()
    mine, second, theirs = (open_perf(each, ue.name()) for each in (ue.process, ue.process, other))
    listens = ue.dated("perf_sink", since="perf", before="")
    mine.close()
    assert used_by(ue) == listens
    second.close()
    assert used_by(ue) == listens
    theirs.close()
    assert used_by(ue) == ""


@case(spec="user_event_reg; kernel/events/core.c:perf_release", doc=USED_BY, needs="perf_sink")
def test_exit(ue: UserEvents) -> None:
    """When a tool exits, its descriptors and rings are released and the bit is cleared."""
    ue.event()
    tool = ue.new_process()
    open_perf(tool, ue.name()).map()
    assert used_by(ue) == "perf"
    tool.exit()
    assert used_by(ue) == ""


@case(spec="kernel/events/core.c:perf_mmap", level="detail", needs="perf_sink")
@doc("Status: silent about perf's rings")
def test_ring_outlives_descriptor(ue: UserEvents) -> None:
    """After close, a mapped ring keeps the perf event, and it is still filled."""
    event, perf, ring = with_ring(ue)
    perf.close()
    assert used_by(ue) == "perf"
    assert event.write(b"\x41\0\0\0").value == 8
    assert ring.records() == ["SAMPLE misc 1 size 24 raw 12: 41 00 00 00"]
    ring.unmap()
    assert used_by(ue) == ""


@case(spec="kernel/events/core.c:perf_release", level="detail", needs="perf_sink")
@doc("Status: silent about perf's descriptors")
def test_forked_descriptor(ue: UserEvents) -> None:
    """A child inherits the descriptor, not the ring; perf is active until both have released."""
    ue.event()
    tool = ue.new_process()
    event = open_perf(tool, ue.name())
    ring = event.map()
    child = ue.fork(tool)
    assert child.load(ring.address, 8).errno == "EFAULT"
    event.close()
    ring.unmap()
    assert used_by(ue) == "perf"
    child.exit()
    assert used_by(ue) == ""


@case(level="contract", needs="perf_sink lasting_events")
@spec("user_event_free, destroy_user_event")
@doc("Deleting: delete succeeds only without references, in user and kernel space")
def test_keeps_from_deletion(ue: UserEvents) -> None:
    """An event used by perf cannot be deleted by ioctl or command, and keeps its fields."""
    ue.tracefs.command(f"u:{ue.name()} u32 a\n")
    event = open_perf(ue.process, ue.name())
    data = ue.open_data()
    assert data.delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.command(f"-:{ue.name()} u32 a\n").errno == "EBUSY"
    assert ue.tracefs.dynamic_events() == f"u:{ue.name()} u32 a\n"
    event.close()
    assert data.delete(ue.name()).value == 0
    assert data.delete(ue.name()).errno == "ENOENT"


@case(spec="user_event_put", level="contract", profiles="6.4..", needs="perf_sink auto_delete")
@doc("Deleting: events auto-delete when no references are left, in user and kernel space")
def test_keeps_alive(ue: UserEvents) -> None:
    """An event without programs stays while perf uses it, and is deleted afterwards."""
    program = ue.new_process()
    program.open_data().register(ue.name() + " u32 a")
    event = open_perf(ue.process, ue.name())
    program.exit()
    assert ue.tracefs.status() == f"{ue.name()} # Used by perf\n"
    event.close()
    assert ue.tracefs.status(eventually=True) == ""


@case(level="contract", profiles="6.4..", needs="perf_sink lasting_events", tier="quick")
@spec("user_event_enabler_create")
@doc("Overview: registration names the bit that reflects whether any tool has the event enabled")
def test_registered_later(ue: UserEvents) -> None:
    """Registering an event that perf uses sets the bit."""
    ue.tracefs.command(f"u:{ue.name()} u32 a\n")
    event = open_perf(ue.process, ue.name())
    registered = ue.open_data().register(ue.name() + " u32 a")
    assert registered.word.value == 1
    event.close()
    assert registered.word.value == 0


@case(
    doc="Registering: each pair of name and format has its tracepoint; silent about the order "
    "of the list",
    profiles="6.9..",
    needs="perf_sink multi_format persist arguments_matched ebadf_when_disabled",
    tier="quick",
)
@spec("user_event_reg")
def test_multi_format(ue: UserEvents) -> None:
    """perf uses one format of a name; the other format is not enabled."""
    data = ue.open_data()
    one = data.register(ue.name() + " u32 a", flags=2)
    two = data.register(ue.name() + " u64 b", flags=2)
    # A name is one bucket of the hash table, newest first.
    newest = ue.tracefs.status().splitlines()[0]
    ring = open_perf(ue.process, newest, system="user_events_multi").map()
    assert ue.tracefs.status().splitlines()[0] == f"{newest} # Used by perf"
    assert (one.word.value, two.word.value) == (0, 1)
    assert data.write_event(0, bytes(4)).errno == "EBADF"
    assert data.write_event(1, b"12345678").value == 12
    assert ring.records() == ["SAMPLE misc 1 size 32 raw 20: 31 32 33 34 35 36 37 38 00 00 00 00"]
