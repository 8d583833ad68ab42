"""Lifetime of triggers on user events: references, and effects on other events."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.status_text import tracepoints, unique_id
from conformance.cases.support.trace_text import u8_lines
from conformance.client.perf import open_perf
from conformance.client.tracefs import MULTI_SYSTEM, SNAPSHOT

SPEC = "trace_events_trigger.c:event_enable_trigger"
DOC = "events.rst@v6.12: Event triggers: snapshot: the trace buffer when the event occurs is kept"
case = surface("trigger", SPEC, DOC, level="detail", tier="full")


@case(level="contract", needs="lasting_events", tier="quick")
@doc("@v6.12: Deleting: delete succeeds only without references, in user and kernel space")
@spec("trace_events_user.c:user_event_last_ref")
@variants(
    ("traceon", "traceon", "stacktrace"), ("conditional", "stacktrace if a == 1", "traceon:1")
)
def test_keeps_the_event(ue: UserEvents, first: str, second: str) -> None:
    """An event with a trigger is busy until the last trigger is removed."""
    ue.tracefs.command(f"u:{ue.name()} u8 a\n")
    data = ue.open_data()
    directory = ue.tracefs.directory(ue.name())
    directory.trigger(first)
    directory.trigger(second)
    assert data.delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.command(f"-:{ue.name()} u8 a\n").errno == "EBUSY"
    directory.trigger(f"!{first}")
    assert data.delete(ue.name()).errno == "EBUSY"
    directory.trigger(f"!{second}")
    assert data.delete(ue.name()).errno == ""
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"


@case(level="contract", profiles="6.4..", needs="auto_delete")
@doc("@v6.12: Deleting: events auto-delete when no references are left, in user and kernel space")
@spec("trace_events_user.c:user_event_put")
def test_outlives_the_process(ue: UserEvents) -> None:
    """A trigger holds an event without programs; removing it deletes the event."""
    process = ue.new_process()
    process.open_data().register(ue.name() + " u8 a")
    directory = ue.tracefs.directory(ue.name())
    directory.trigger("traceon")
    process.exit()
    assert ue.event("u8 a").write(b"\1").value == 5
    ue.process.exit()
    assert directory.triggers == "traceon:unlimited\n"
    assert directory.trigger("!traceon").errno == ""
    path = ue.tracefs.event_path(ue.name(), "enable")
    assert ue.tracefs.read(path, eventually=True).errno == "ENOENT"


@case(level="behaviour", profiles="6.4..", needs="multi_format persist arguments_matched")
@doc("@v6.12: Registering: each pair of name and format has its tracepoint; silent about triggers")
@spec("trace_events_user.c:user_event_reg")
def test_of_one_format(ue: UserEvents) -> None:
    """Of several formats of a name, trigger and filter apply to the one they were set on."""
    data = ue.open_data()
    first = data.register(ue.name() + " u8 a", flags=2)
    second = data.register(ue.name() + " u8 b", flags=2)
    names = sorted(tracepoints(ue), key=unique_id)
    formats = {ue.tracefs.format(each, system=MULTI_SYSTEM).count("u8 b"): each for each in names}
    directory = ue.tracefs.directory(formats[0], MULTI_SYSTEM)
    other = ue.tracefs.directory(formats[1], MULTI_SYSTEM)
    assert other.set_filter("a == 1").errno == "EINVAL"
    assert directory.set_filter("a == 1").errno == ""
    assert directory.trigger("traceon").errno == ""
    assert (first.word.value, second.word.value) == (1, 0)
    assert other.trigger("traceon if b == 1").errno == ""
    assert (first.word.value, second.word.value) == (1, 1)
    assert (directory.enabled, other.enabled) == ("0*\n", "0*\n")
    directory.trigger("!traceon")
    assert (first.word.value, second.word.value) == (0, 1)
    other.trigger("!traceon")
    assert (first.word.value, second.word.value) == (0, 0)


@case(level="behaviour", needs="perf_sink", facilities="perf")
@doc("@v6.12: Status: the bit is set while something is attached; silent about triggers")
@spec("trace_events_user.c:update_enable_bit_for")
def test_beside_perf(ue: UserEvents) -> None:
    """Trigger and perf both use the event: the enable word is set until both are gone."""
    event = ue.event("u8 a")
    listener = open_perf(ue.process, ue.name())
    event.directory.trigger("traceon")
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace perf")
    event.write(b"\1")
    assert listener.count == 1
    assert ue.tracefs.records() == []
    listener.close()
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    event.directory.trigger("!traceon")
    assert ue.tracefs.status() == ue.status_line(1, ue.name())
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)


@case(doc="Event triggers", isolation="global")
@variants(
    ("always", "enable_event:signal:signal_generate", "0*\n", "1*\n", "1\n"),
    ("not-yet", "enable_event:signal:signal_generate if a == 2", "0*\n", "0*\n", "0\n"),
    ("no-more", "enable_event:signal:signal_generate:0", "0*\n", "0*\n", "0\n"),
    ("disable", "disable_event:signal:signal_generate", "0*\n", "0*\n", "0\n"),
)
def test_enable_kernel_event(ue: UserEvents, text: str, before: str, after: str, left: str) -> None:
    """A user event enables a kernel event, which stays enabled without the trigger."""
    event = ue.event("u8 a")
    assert event.directory.trigger(text).errno == ""
    assert ue.tracefs.enabled("signal_generate", system="signal").text == before
    assert event.write(b"\1").value == 5
    assert ue.tracefs.enabled("signal_generate", system="signal").text == after
    assert event.directory.trigger(f"!{text}").errno == ""
    assert ue.tracefs.enabled("signal_generate", system="signal").text == left
    ue.tracefs.disable("signal_generate", system="signal")
    assert ue.tracefs.enabled("signal_generate", system="signal").text == "0\n"


# On 7.3 removing a trigger drops its reference to the enabled event later, in memory that may be
# freed by then: the guest is not used again.


@case(doc="Event triggers", isolation="fatal")
def test_enable_event(ue: UserEvents) -> None:
    """One user event enables another, whose enable word is set as long as the trigger exists."""
    data = ue.event("u8 a").data
    other = data.register(ue.name("other") + " u8 b")
    directory = ue.tracefs.directory(ue.name())
    target = ue.tracefs.directory(ue.name("other"))
    text = f"enable_event:user_events:{ue.name('other')}"
    assert directory.trigger(f"{text}:1").errno == ""
    assert directory.triggers == f"{text}:count=1\n"
    assert directory.trigger(f"disable{text[6:]} if a == 3").errno == "EEXIST"
    assert target.enabled == "0*\n"
    assert other.word_value == ue.dated("remote_enable", since=1, before=None)
    data.write_event(1, b"\1")
    data.write_event(0, b"\1")
    assert directory.triggers == f"{text}:count=0\n"
    assert target.enabled == "1*\n"
    data.write_event(1, b"\2")
    assert directory.trigger(f"!{text}").errno == ""
    assert target.enabled == "1\n"
    data.write_event(1, b"\3")
    lines = [ue.line(f"b=({b})", dump=f"{b:02x}", name="other") for b in (2, 3)]
    assert ue.tracefs.records() == lines
    ue.tracefs.disable(ue.name("other"))
    assert target.enabled == "0\n"
    assert other.word_value == ue.dated("remote_enable", since=0, before=None)


@case(doc="Event triggers", isolation="fatal")
def test_disable_event(ue: UserEvents) -> None:
    """One user event disables another: it is no longer recorded, and its word stays set."""
    data = ue.event("u8 a").data
    other = data.register(ue.name("other") + " u8 b")
    ue.tracefs.enable(ue.name("other"))
    directory = ue.tracefs.directory(ue.name())
    target = ue.tracefs.directory(ue.name("other"))
    text = f"disable_event:user_events:{ue.name('other')}"
    assert directory.trigger(f"{text} if a == 2").errno == ""
    assert target.enabled == "1*\n"
    for number in (1, 2):
        data.write_event(0, bytes([number]))
        assert data.write_event(1, bytes([number])).value == 5
    assert target.enabled == "0*\n"
    assert other.word_value == ue.dated("remote_enable", since=1, before=None)
    assert ue.tracefs.records() == [ue.line("b=(1)", dump="01", name="other")]
    assert directory.trigger(f"!{text}").errno == ""
    assert target.enabled == "0\n"
    assert other.word_value == ue.dated("remote_enable", since=0, before=None)


@case(level="behaviour", needs="lasting_events", tier="quick", isolation="fatal")
@doc("@v6.12: Deleting: delete succeeds only without references; silent about triggers")
@spec("trace_events_user.c:user_event_last_ref; trace_events_trigger.c:event_enable_trigger_parse")
def test_target_is_busy(ue: UserEvents) -> None:
    """The target of a trigger is busy as long as the trigger exists."""
    for stem in ("e", "other"):
        ue.tracefs.command(f"u:{ue.name(stem)} u8 a\n")
    data = ue.open_data()
    directory = ue.tracefs.directory(ue.name())
    text = f"enable_event:user_events:{ue.name('other')}"
    assert directory.trigger(text).errno == ""
    assert data.delete(ue.name("other")).errno == "EBUSY"
    assert data.delete(ue.name()).errno == "EBUSY"
    assert directory.trigger(f"!{text}").errno == ""
    assert data.delete(ue.name()).errno == ""


@case(spec="snapshot_trigger; trace.c:update_max_tr", isolation="global", facilities="snapshot")
@variants(
    # The earlier records, without the one that took the snapshot.
    ("always", "snapshot:1", [1], [2, 3, 4], [2, 3, 4]),
    # A record that a trigger reads has its room in the buffer before the swap.
    ("conditional", "snapshot if a == 3", [1, 2, 3], [4], [4]),
    ("no-more", "snapshot:0", [], [1, 2, 3, 4], [1, 2, 3, 4]),
)
def test_snapshot(
    ue: UserEvents, text: str, kept: list[int], then: list[int], afterwards: list[int]
) -> None:
    """A snapshot keeps the earlier records; recording continues in the other buffer."""
    event = ue.event("u8 a", enabled=True)
    event.write(b"\1")
    assert event.directory.trigger(text).errno == ""
    for number in (2, 3, 4):
        assert event.write(bytes([number])).value == 5
    assert ue.tracefs.snapshot() == u8_lines(ue, *kept)
    assert ue.tracefs.records() == u8_lines(ue, *then)
    event.directory.trigger("!snapshot")
    assert ue.tracefs.write(SNAPSHOT, "0\n").errno == ""
    assert ue.tracefs.snapshot() == []
    assert ue.tracefs.records() == u8_lines(ue, *afterwards)


@case(spec="trace.c:update_max_tr", isolation="global", facilities="snapshot")
def test_snapshot_again(ue: UserEvents) -> None:
    """The second snapshot swaps back what the first one took."""
    event = ue.event("u8 a", enabled=True)
    event.write(b"\1")
    event.directory.trigger("snapshot")
    event.write(b"\2")
    event.write(b"\3")
    assert ue.tracefs.snapshot() == [ue.line("a=(2)", dump="02")]
    assert ue.tracefs.records() == u8_lines(ue, 1, 3)


@case(spec="trace.c:tracing_iter_reset", isolation="global", facilities="snapshot")
def test_snapshot_of_cleared(ue: UserEvents) -> None:
    """`trace` skips records of before it was cleared, even if a snapshot swaps them back."""
    event = ue.event("u8 a", enabled=True)
    event.write(b"\1")
    assert ue.tracefs.write(SNAPSHOT, "1\n").errno == ""
    ue.tracefs.clear_trace()
    event.write(b"\2")
    assert ue.tracefs.write(SNAPSHOT, "1\n").errno == ""
    event.write(b"\3")
    assert ue.tracefs.records() == u8_lines(ue, 3)
    assert ue.tracefs.snapshot() == u8_lines(ue, 2)
    assert ue.tracefs.write(SNAPSHOT, "1\n").errno == ""
    assert ue.tracefs.records() == u8_lines(ue, 2)
    assert ue.tracefs.snapshot() == u8_lines(ue, 1, 3)


@case(spec="register_snapshot_trigger", isolation="global", facilities="snapshot")
@doc("Event triggers: snapshot")
def test_snapshot_not_enabled(ue: UserEvents) -> None:
    """A disabled event can take snapshots of what other events recorded."""
    data = ue.register(e="u8 a", other="u8 b")
    ue.tracefs.enable(ue.name("other"))
    directory = ue.tracefs.directory(ue.name())
    assert directory.trigger("snapshot").errno == ""
    assert directory.triggers == "snapshot:unlimited\n"
    data.write_event(1, b"\1")
    assert data.write_event(0, b"\2").value == 5
    assert ue.tracefs.snapshot() == [ue.line("b=(1)", dump="01", name="other")]
    assert ue.tracefs.records() == []
