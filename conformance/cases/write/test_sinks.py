"""One write with several tracers: each records it or not, and an error of one reaches the writer.

An instance with tracing off still has the event enabled, and validates nothing.
"""

from conformance.cases.case import UserEvents, spec, surface, variants
from conformance.cases.support.instances import create_instance, enabled_in
from conformance.client.perf import open_perf
from conformance.client.tracefs import Tracefs

SPEC = "user_events_write_core: probes; trace_events_user.c:user_event_perf"
DOC = "Writing Data: silent about several tracers"
case = surface("write", SPEC, DOC, level="behaviour", tier="full", isolation="global")

STRING = "__rel_loc char[] s"
# Without its NUL, and with it.
INVALID = b"\0\0\2\0hi"
VALID = b"\0\0\3\0hi\0"


def turn(files: Tracefs, on: str) -> None:
    """Turn tracing of an instance on or off."""
    assert files.write(files.path("tracing_on"), on).value == 1


@case(spec="user_event_ftrace", doc="Writing Data: silent about tracing_on", tier="quick")
def test_turned_off(ue: UserEvents) -> None:
    """While tracing is off the event stays enabled and writable, and nothing is recorded."""
    event = ue.event("u16 a")
    turn(ue.tracefs, "0")
    event.enable()
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert event.write(b"\1\0").value == 6
    assert ue.tracefs.read(ue.tracefs.path("tracing_on")).text == "0\n"
    turn(ue.tracefs, "1")
    assert ue.tracefs.records() == []
    assert event.write(b"\2\0").value == 6
    assert ue.tracefs.records() == [ue.line("a=0x2 (2)", dump="02 00")]


@case(spec="user_event_ftrace")
@variants({"first": 0, "second": 1})
def test_one_of_two_turned_off(ue: UserEvents, off: int) -> None:
    """Of two instances one has tracing off: the other records, and the write succeeds."""
    pair = create_instance(ue, "i"), create_instance(ue, "j")
    data = enabled_in(ue, STRING, *pair)
    turn(pair[off], "0")
    assert data.write_event(0, VALID).value == 11
    assert pair[off].records() == []
    assert pair[1 - off].records() == [ue.line("s=hi", dump="00 00 03 00 68 69 00")]


@case(needs="dynamic_fields_validated", tier="quick")
@spec("user_event_ftrace: discard; trace_events_user.c:user_events_write_core: probes")
@variants(
    ("both_on", "11", "EFAULT"),
    ("first_on", "10", "EFAULT"),
    ("second_on", "01", "EFAULT"),
    ("both_off", "00", ""),
)
def test_refused_by_who_records(ue: UserEvents, enabled: str, errno: str) -> None:
    """A malformed payload is rejected if one instance would record it, and none records it."""
    pair = create_instance(ue, "i"), create_instance(ue, "j")
    data = enabled_in(ue, STRING, *pair)
    for each, on in zip(pair, enabled, strict=True):
        turn(each, on)
    assert data.write_event(0, INVALID).errno == errno
    for each in pair:
        assert each.records() == []
        each.remove()


@case(needs="unreadable_payload_refused")
@spec("user_events_write_core: probes: fault_in_iov_iter_readable")
@variants({"both_on": "11", "one_on": "01", "both_off": "00"})
def test_unreadable_for_nobody(ue: UserEvents, enabled: str) -> None:
    """An unreadable payload is EFAULT for any tracer that would record; none records part of it."""
    pair = create_instance(ue, "i"), create_instance(ue, "j")
    data = enabled_in(ue, STRING, *pair)
    for each, on in zip(pair, enabled, strict=True):
        turn(each, on)
    page = ue.process.map()
    ue.process.store(page + 4084, b"\0\0\0\0" + VALID + b"\0")
    assert data.write_at(page + 4084, 13).errno == "EFAULT"
    assert data.write_at(page + 4084, 12).value == 12
    assert [len(each.records()) for each in pair] == [int(on) for on in enabled]


@case(needs="perf_sink dynamic_fields_validated", facilities="perf")
@variants(("invalid", INVALID, "EFAULT", 0), ("valid", VALID, "", 1))
def test_refused_for_all(ue: UserEvents, payload: bytes, errno: str, taken: int) -> None:
    """ftrace at the top, an instance, and perf: all record a write, or none."""
    instance = create_instance(ue)
    data = enabled_in(ue, STRING, ue.tracefs, instance)
    event = open_perf(ue.process, ue.name())
    assert data.write_event(0, payload).errno == errno
    assert event.count == taken
    assert (len(ue.tracefs.records()), len(instance.records())) == (taken, taken)


@case(level="detail", needs="dynamic_fields_validated", tier="quick")
@spec("trace_events.h:trace_trigger_soft_disabled;")
@spec("trace_events_user.c:user_events_write_core: probes")
@variants("refusing", "acting")
def test_refused_and_acted_on(ue: UserEvents, asked_first: str) -> None:
    """A trigger at the top that reads no records fires for a write that an instance rejects."""
    instance, event = create_instance(ue), ue.event(STRING)
    if asked_first == "refusing":
        instance.enable(ue.name())
    turn(ue.tracefs, "0")
    assert event.directory.trigger("traceon").errno == ""
    instance.enable(ue.name())
    assert event.write(INVALID).errno == "EFAULT"
    assert ue.tracefs.read(ue.tracefs.path("tracing_on")).text == "1\n"
    assert instance.records() == []


@case(needs="perf_sink", facilities="perf")
def test_perf_while_turned_off(ue: UserEvents) -> None:
    """perf counts writes that an instance with tracing off, or its PID list, does not record."""
    instance = create_instance(ue)
    data = enabled_in(ue, STRING, ue.tracefs, instance)
    event = open_perf(ue.process, ue.name())
    turn(ue.tracefs, "0")
    assert ue.process.write_pid(instance.path("set_event_notrace_pid")).errno == ""
    assert data.write_event(0, VALID).value == 11
    assert event.count == 1
    assert ue.tracefs.records() == []
    assert instance.records() == []


@case(spec="user_events_write_core: probes")
def test_many_listeners(ue: UserEvents) -> None:
    """Each of twelve instances has the record; the event is in use until the last disables it."""
    crowd = [ue.instance(f"i{number}") for number in range(12)]
    for each in crowd:
        assert each.make().errno == ""
    data = enabled_in(ue, STRING, *crowd)
    assert data.write_event(0, VALID).value == 11
    for each in crowd:
        assert len(each.records()) == 1
        assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
        each.remove()
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write_event(0, VALID).errno == errno
