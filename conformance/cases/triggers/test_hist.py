"""Triggers enable_hist and disable_hist: one user event pauses the histograms of another."""

import os

from conformance.cases.case import UserEvents, doc, surface, variants

SPEC = "trace_events_trigger.c"
DOC = "histogram.rst@v6.12: enable_hist and disable_hist triggers"
case = surface(
    "trigger", SPEC, DOC, level="detail", tier="full", isolation="fatal", facilities="hist"
)

# On 7.3 removing a trigger drops its reference to the target event later, in memory that may be
# freed by then: the guest is not used again.


@case(spec="event_enable_trigger_parse, event_enable_register_trigger")
def test_hist_switch_refused(ue: UserEvents) -> None:
    """A trigger with no target, an invalid count or filter, or a duplicate changes nothing."""
    other = ue.event("u8 a").data.register(ue.name("other") + " u8 b")
    directory = ue.tracefs.directory(ue.name())
    aim = f"user_events:{ue.name('other')}"
    for wrong in ("", ":", ":user_events", f":user_events:{ue.name('none')}", f":{aim}:x"):
        assert directory.trigger(f"enable_hist{wrong}").errno == "EINVAL"
    # The condition is on the event that is written, not on the target.
    assert directory.trigger(f"enable_hist:{aim} if b == 1").errno == "EINVAL"
    assert other.word_value == ue.dated("remote_enable", since=0, before=None)
    assert directory.trigger(f"enable_hist:{aim}").errno == ""
    assert directory.trigger(f"disable_hist:{aim}:3").errno == "EEXIST"
    assert directory.trigger(f"enable_event:{aim}").errno == ""
    assert directory.triggers == f"enable_event:{aim}:unlimited\nenable_hist:{aim}:unlimited\n"
    directory.trigger(f"!disable_hist:{aim}")
    assert directory.triggers == f"enable_event:{aim}:unlimited\n"
    directory.trigger(f"!enable_event:{aim}")
    assert directory.enabled == "0\n"


@case(spec="trace_events_hist.c:hist_enable_trigger")
def test_enable_hist(ue: UserEvents) -> None:
    """One user event continues all histograms of another; they continue without the trigger."""
    data = ue.register(e="u8 a", other="u8 b")
    directory, target = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    text = f"enable_hist:user_events:{ue.name('other')}"
    target.trigger("hist:keys=b:pause")
    target.trigger("hist:keys=b:vals=b:pause")
    assert directory.trigger(text).errno == ""
    data.write_event(1, b"\1")
    data.write_event(0, b"\1")
    data.write_event(1, b"\2")
    assert directory.trigger(f"!{text}").errno == ""
    data.write_event(1, b"\2")
    assert target.triggers == (
        "hist:keys=b:vals=hitcount:sort=hitcount:size=2048 [active]\n"
        "hist:keys=b:vals=hitcount,b:sort=hitcount:size=2048 [active]\n"
    )
    assert target.hist.count("    Hits: 2\n    Entries: 1\n") == 2
    assert ue.tracefs.records() == []


@case(spec="trace_events_hist.c:hist_enable_trigger; trace_events_trigger.c:event_trigger_count")
def test_disable_hist(ue: UserEvents) -> None:
    """A condition and a count limit when, and how often, a histogram is paused."""
    data = ue.register(e="u8 a", other="u8 b")
    directory, target = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    text = f"disable_hist:user_events:{ue.name('other')}"
    target.trigger("hist:keys=b:sort=b")
    directory.trigger(f"{text}:1 if a == 2")
    for number in (1, 2, 3):
        data.write_event(0, bytes([number]))
        data.write_event(1, bytes([number]))
    assert directory.triggers == f"{text}:count=0 if a == 2\n"
    assert target.triggers == "hist:keys=b:vals=hitcount:sort=b:size=2048 [paused]\n"
    target.trigger("hist:keys=b:sort=b:cont")
    data.write_event(0, b"\2")
    data.write_event(1, b"\4")
    lines = [line for line in target.hist.splitlines() if line.startswith("{ ")]
    assert lines == [
        "{ b:          1 } hitcount:          1",
        "{ b:          4 } hitcount:          1",
    ]


@case(spec="event_trigger_count")
@doc("enable_hist and disable_hist triggers; a count says how often")
def test_hist_switch_counts(ue: UserEvents) -> None:
    """The count decreases with every event, whether there is a histogram to switch or not."""
    data = ue.register(e="u8 a", other="u8 b")
    directory, target = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    text = f"disable_hist:user_events:{ue.name('other')}"
    assert directory.trigger(f"{text}:2").errno == ""
    assert target.enabled == "0*\n"
    for left in (1, 0, 0):
        data.write_event(0, b"\1")
        assert directory.triggers == f"{text}:count={left}\n"
    target.trigger("hist:keys=b")
    data.write_event(0, b"\1")
    assert target.triggers == "hist:keys=b:vals=hitcount:sort=hitcount:size=2048 [active]\n"
    target.trigger("!hist:keys=b")
    directory.trigger(f"!{text}")
    assert target.enabled == "0\n"


@case(spec="trace_events_hist.c:hist_enable_trigger; trace_events_trigger.c:event_triggers_call")
@variants(
    ("disable", "disable_hist", "", 0, "paused"), ("enable", "enable_hist", ":pause", 2, "active")
)
def test_hist_switch_of_itself(ue: UserEvents, kind: str, first: str, hits: int, then: str) -> None:
    """An event may switch its own histogram, and the order decides whether it counts itself."""
    event = ue.event("u8 a")
    event.directory.trigger(f"hist:keys=a{first}")
    text = f"{kind}:user_events:{ue.name()}"
    assert event.directory.trigger(text).errno == ""
    event.write(b"\1")
    event.write(b"\1")
    assert f"\nTotals:\n    Hits: {hits}\n" in event.directory.hist
    assert event.directory.triggers.endswith(f":size=2048 [{then}]\n")
    event.directory.trigger(f"!{text}")
    assert event.directory.trigger("!hist:keys=a").errno == ""
    assert event.directory.enabled == "0\n"


@case(spec="trace_events_hist.c:hist_enable_unreg_all")
@doc("enable_hist and disable_hist triggers; > and >> are documented as the same")
def test_hist_switch_truncated(ue: UserEvents) -> None:
    """Opening the file with O_TRUNC removes these triggers and keeps enable_event."""
    other = ue.event("u8 a").data.register(ue.name("other") + " u8 b")
    directory = ue.tracefs.directory(ue.name())
    aim = f"user_events:{ue.name('other')}"
    directory.trigger(f"disable_hist:{aim}")
    directory.trigger(f"enable_event:{aim}")
    assert directory.trigger("traceon", os.O_WRONLY | os.O_TRUNC).errno == ""
    assert directory.triggers == f"traceon:unlimited\nenable_event:{aim}:unlimited\n"
    directory.trigger("!traceon")
    directory.trigger(f"!enable_event:{aim}")
    assert other.word_value == ue.dated("remote_enable", since=0, before=None)


@case(spec="event_enable_trigger_parse: trace_event_try_get_ref", needs="lasting_events")
@doc("@v6.12: Deleting: delete succeeds only without references; silent about triggers")
def test_hist_target_is_busy(ue: UserEvents) -> None:
    """The target event is busy, and its enable word set, as long as the trigger exists."""
    for stem in ("e", "other"):
        ue.tracefs.command(f"u:{ue.name(stem)} u8 a\n")
    data = ue.open_data()
    directory, target = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    text = f"enable_hist:user_events:{ue.name('other')}"
    assert directory.trigger(text).errno == ""
    assert target.enabled == "0*\n"
    assert data.delete(ue.name("other")).errno == "EBUSY"
    assert directory.trigger(f"!{text}").errno == ""
    assert target.enabled == "0\n"
    assert data.delete(ue.name()).errno == ""
