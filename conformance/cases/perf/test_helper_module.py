"""A tracer that is neither ftrace nor perf: a probe attached by a module.

The module is fixtures/modules/uevt_probe.  user_events updates enable words only when ftrace or
perf attaches or detaches; a write calls any probe at once.
"""

from collections.abc import Callable

from conformance.cases.case import UserEvents, doc, spec, surface
from conformance.cases.support.status_page import map_page
from conformance.cases.support.writing import RECORD

SPEC = "user_events_write_core: any enabled key of the tracepoint"
DOC = "Status: silent about tracers other than ftrace and perf"
case = surface("other", SPEC, DOC, level="behaviour", isolation="global", module="uevt_probe")


def registered_state(ue: UserEvents) -> Callable[[], int]:
    """The enable state of an event as its program sees it: a status byte or bit, or the word."""
    event = ue.event("u32 a")
    if not ue.profile.has("status_page"):
        return lambda: event.word.value
    page = map_page(ue.process)
    return lambda: page.shows(event.place)


def attach_noticed(ue: UserEvents) -> None:
    """Attach the foreign probe, and let ftrace attach and detach: user_events then notices it."""
    ue.tracefs.attach_probe(ue.name())
    ue.tracefs.enable(ue.name())
    ue.tracefs.disable(ue.name())


@case(spec="user_event_reg", level="detail")
def test_unnoticed(ue: UserEvents) -> None:
    """Attaching a foreign probe does not set the enable word."""
    state = registered_state(ue)
    assert ue.tracefs.attach_probe(ue.name()).errno == ""
    assert state() == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(spec="user_event_reg")
def test_beside_ftrace(ue: UserEvents) -> None:
    """When ftrace attaches, the foreign probe is noticed: the status names both."""
    state = registered_state(ue)
    ue.tracefs.attach_probe(ue.name())
    ue.tracefs.enable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace other")
    assert state() == (0x81 if ue.profile.generation == "byte-status" else 1)


@case(spec="user_event_reg")
def test_alone(ue: UserEvents) -> None:
    """When ftrace detaches, the foreign probe stays and the enable word stays set."""
    state = registered_state(ue)
    attach_noticed(ue)
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "other")
    assert state() == (0x80 if ue.profile.generation == "byte-status" else 1)


@case(spec="user_event_reg", level="detail", tier="full")
def test_behind_ftrace(ue: UserEvents) -> None:
    """A foreign probe added to an enabled event is noticed at the next change, not before."""
    state = registered_state(ue)
    ue.tracefs.enable(ue.name())
    ue.tracefs.attach_probe(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert state() == 1
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "other")


@case(spec="user_event_reg", level="detail")
def test_gone(ue: UserEvents) -> None:
    """Detaching a foreign probe is noticed only when ftrace attaches and detaches."""
    state = registered_state(ue)
    attach_noticed(ue)
    assert ue.tracefs.detach_probe().errno == ""
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "other")
    assert state() == (0x80 if ue.profile.generation == "byte-status" else 1)
    ue.tracefs.enable(ue.name())
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    assert state() == 0


@case(spec="user_event_enabler_create", profiles="6.4..", tier="full")
def test_set_at_registration(ue: UserEvents) -> None:
    """A word registered while a foreign probe is known has its bit set at once."""
    data = ue.event("u32 a").data
    attach_noticed(ue)
    assert data.register(ue.name() + " u32 a", word=ue.process.word(), bit=3).word.value == 8


@case(doc="Writing Data: silent about tracers other than ftrace and perf")
def test_write_succeeds(ue: UserEvents) -> None:
    """A write calls a foreign probe at once: it succeeds, and nothing is recorded."""
    data = ue.event("u32 a").data
    disabled = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write(RECORD).errno == disabled
    ue.tracefs.attach_probe(ue.name())
    assert data.write(RECORD).value == 8
    ue.tracefs.detach_probe()
    assert data.write(RECORD).errno == disabled
    assert ue.tracefs.records() == []


@case(doc="Writing Data: silent about tracers other than ftrace and perf")
def test_write_reads(ue: UserEvents) -> None:
    """With only a foreign probe, a payload must be readable and as long as the fields."""
    data = ue.event("u32 a").data
    ue.tracefs.attach_probe(ue.name())
    at = ue.process.place(b"\0\0\0\0")
    unreadable = ue.dated("unreadable_payload_refused", since="EFAULT", before="")
    short = ue.dated("payload_size_checked", since="EINVAL", before="")
    assert data.write_at(at, 8).errno == unreadable
    assert data.write(RECORD[:7]).errno == short


@case(doc="Writing Data: silent about events without payload", level="detail", tier="full")
@spec("user_events_write_core: any enabled key of the tracepoint; copy_nofault is ftrace's")
def test_write_without_payload(ue: UserEvents) -> None:
    """An event without fields needs no payload if a foreign probe is its only tracer."""
    data = ue.event().data
    ue.tracefs.attach_probe(ue.name())
    assert data.write(b"\0\0\0\0").value == 4


@case(spec="user_event_last_ref", level="detail", needs="lasting_events", tier="full")
@doc("Deleting: delete succeeds only without references; silent about foreign probes")
def test_holds_nothing(ue: UserEvents) -> None:
    """A foreign probe holds no reference: an event that is used only by it can be deleted."""
    ue.tracefs.command(f"u:{ue.name()} u32 a\n")
    attach_noticed(ue)
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "other")
    assert ue.open_data().delete(ue.name()).value == 0
    assert ue.tracefs.status() == ""
    assert ue.tracefs.detach_probe().errno == "ENOENT"
