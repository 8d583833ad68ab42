"""Triggers in tracefs instances: they act in their instance, and hold the event."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.instances import create_instance, enabled_in
from conformance.cases.support.trace_text import u8_lines

SPEC = "trace_events_trigger.c"
DOC = "ftrace.rst@v6.12: Instances: events of an instance are its own, with what is set on them"
case = surface("instance", SPEC, DOC, level="detail", tier="full", isolation="global")


@case(spec="event_trigger_regex_write; trace_events.c:find_event_file")
def test_trigger_tells(ue: UserEvents) -> None:
    """A trigger in an instance sets the enable word; one at the top is separate."""
    instance, event = create_instance(ue), ue.event("u8 a")
    top, directory = event.directory, instance.directory(ue.name())
    assert directory.trigger("traceon").errno == ""
    assert (top.enabled, directory.enabled) == ("0\n", "0*\n")
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert top.trigger("traceoff:2").errno == ""
    assert (top.triggers, directory.triggers) == ("traceoff:count=2\n", "traceon:unlimited\n")
    assert directory.trigger("!traceon").errno == ""
    assert (top.enabled, directory.enabled) == ("0*\n", "0\n")
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    top.trigger("!traceoff")
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)


@case(level="behaviour", needs="lasting_events", facilities="hist")
@doc("@v6.12: Deleting: delete succeeds only without references; silent about triggers")
@spec("trace_events_user.c:user_event_last_ref; trace_events_trigger.c:clear_event_triggers")
@variants(
    ("hist", "hist:keys=a"), ("traceon", "traceon"), ("conditional", "stacktrace:2 if a == 1")
)
def test_trigger_keeps_an_event(ue: UserEvents, text: str) -> None:
    """An event with a trigger in an instance is busy until the instance is removed."""
    ue.tracefs.command(f"u:{ue.name()} u8 a\n")
    instance = create_instance(ue)
    data = ue.open_data()
    assert instance.directory(ue.name()).trigger(text).errno == ""
    assert data.delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.command(f"-:{ue.name()} u8 a\n").errno == "EBUSY"
    assert instance.remove().value == 0
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    assert data.delete(ue.name()).value == 0


@case(level="behaviour", profiles="6.4..", needs="auto_delete")
@doc("@v6.12: Deleting: events auto-delete when no references are left; silent about triggers")
@spec("trace_events_user.c:user_event_put; trace_events_trigger.c:clear_event_triggers")
def test_trigger_is_the_last_reference(ue: UserEvents) -> None:
    """An event referenced only by a trigger in an instance is deleted with the instance."""
    instance = create_instance(ue)
    ue.event("u8 a")
    instance.directory(ue.name()).trigger("traceon")
    ue.process.exit()
    assert ue.tracefs.status(eventually=True) == f"{ue.name()} # Used by ftrace\n"
    assert instance.remove().value == 0
    assert ue.tracefs.status(eventually=True) == ""


@case(spec="traceoff_trigger")
@variants(
    ("traceoff", "traceoff if a == 2", "1\n", [1, 2], "0\n"),
    ("traceon", "traceon if a == 2", "0\n", [3], "1\n"),
    ("another", "stacktrace if a == 2", "1\n", [1, 2, 3], "1\n"),
)
def test_traceoff(ue: UserEvents, text: str, before: str, kept: list[int], after: str) -> None:
    """A trigger in an instance stops and starts that instance; the top records everything."""
    instance = create_instance(ue)
    data = enabled_in(ue, "u8 a", ue.tracefs, instance)
    switch = instance.path("tracing_on")
    instance.write(switch, before)
    instance.directory(ue.name()).trigger(text)
    for payload in (b"\1", b"\2", b"\3"):
        assert data.write_event(0, payload).value == 5
    assert instance.records() == u8_lines(ue, *kept)
    assert ue.tracefs.records() == u8_lines(ue, 1, 2, 3)
    assert instance.read(switch).text == after


@case(spec="stacktrace_trigger", profiles="6.4..")
def test_stacktrace(ue: UserEvents) -> None:
    """The stack trace is recorded in the instance that has the trigger."""
    instance, event = create_instance(ue), ue.event("u8 a", enabled=True)
    directory = instance.directory(ue.name())
    directory.trigger("stacktrace:1")
    for payload in (b"\1", b"\2"):
        event.write(payload)
    assert instance.records_and_stacks() == ["<stack trace>"]
    assert ue.tracefs.records_and_stacks() == u8_lines(ue, 1, 2)
    assert directory.triggers == "stacktrace:count=0\n"


@case(spec="snapshot_trigger; trace.c:tracing_snapshot_instance", facilities="snapshot")
def test_snapshot(ue: UserEvents) -> None:
    """A snapshot in an instance is of its own buffer, and is removed with the instance."""
    instance = create_instance(ue)
    data = enabled_in(ue, "u8 a", ue.tracefs, instance)
    instance.directory(ue.name()).trigger("snapshot if a == 2")
    for payload in (b"\1", b"\2", b"\3"):
        data.write_event(0, payload)
    assert instance.snapshot() == u8_lines(ue, 1, 2)
    assert instance.records() == u8_lines(ue, 3)
    assert ue.tracefs.records() == u8_lines(ue, 1, 2, 3)
    assert instance.remove().value == 0


@case(spec="trace_events_hist.c:event_hist_trigger", facilities="hist")
@doc("histogram.rst@v6.12: hist triggers; of instances it says nothing")
def test_hist(ue: UserEvents) -> None:
    """Histograms of an event at the top and in an instance are independent."""
    instance, event = create_instance(ue), ue.event("u8 a")
    top, directory = event.directory, instance.directory(ue.name())
    assert directory.trigger("hist:keys=a").errno == ""
    assert top.trigger("hist:keys=a:clear").errno == "ENOENT"
    event.write(b"\1")
    assert top.hist == ""
    assert top.trigger("hist:keys=a").errno == ""
    directory.trigger("hist:keys=a:pause")
    event.write(b"\2")
    assert "{ a:          1 } hitcount:          1\n" in directory.hist
    assert "    Hits: 1\n" in directory.hist
    assert "{ a:          2 } hitcount:          1\n" in top.hist
    assert "    Hits: 1\n" in top.hist
    assert instance.remove().value == 0


# On 7.3 removing a trigger drops its reference to the enabled event later, in memory that may be
# freed by then: the guest is not used again.


@case(spec="event_enable_trigger_parse: find_event_file", isolation="fatal")
def test_enable_event(ue: UserEvents) -> None:
    """In an instance, one user event enables another there, and not at the top."""
    instance = create_instance(ue)
    data = ue.event("u8 a").data
    other = data.register(ue.name("other") + " u8 a")
    text = f"enable_event:user_events:{ue.name('other')}"
    assert instance.directory(ue.name()).trigger(f"{text} if a == 2").errno == ""
    aims = [files.directory(ue.name("other")) for files in (ue.tracefs, instance)]
    assert [aim.enabled for aim in aims] == ["0\n", "0*\n"]
    for number in (1, 2, 3):
        data.write_event(0, bytes([number]))
        assert data.write_event(1, bytes([number])).value == 5
    assert [aim.enabled for aim in aims] == ["0\n", "1*\n"]
    assert instance.records() == u8_lines(ue, 2, 3, name="other")
    assert ue.tracefs.records() == []
    assert instance.remove().value == 0
    assert other.word_value == ue.dated("remote_enable", since=0, before=None)
    assert ue.tracefs.status().count(" # Used by") == 0
