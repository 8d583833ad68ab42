"""Eprobes on user events, created through dynamic_events: what they record and hold."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.eprobes import (
    add_eprobe,
    disable_eprobe,
    enable_eprobe,
    remove_eprobe,
)
from conformance.cases.support.instances import create_instance
from conformance.client.tracefs import KPROBES, MULTI_SYSTEM, TRACING_ON

SPEC = "trace_probe.c:traceprobe_parse_event_name: is_good_name"
DOC = "eprobetrace.rst@v6.12: fields of the event, fetched as numbers"
case = surface("eprobe", SPEC, DOC, level="detail", tier="full", facilities="eprobes")


@case(spec="trace_eprobe.c:get_event_field")
@variants(
    ("plain", "u32 a; s16 b", "a=$a b=$b", b"\x41\0\0\0\xff\xff", " a=0x41 b=0xffffffffffffffff"),
    ("typed", "u32 a; s16 b", "a=$a:u32 b=$b:s16", b"\x41\0\0\0\xff\xff", " a=65 b=-1"),
    ("renamed", "u32 a; u8 b", "other=$b:u8", b"\x41\0\0\0\x07", " other=7"),
    ("narrow", "u32 a", "a=$a:u8", b"\x41\1\0\0", " a=65"),
    ("signed", "s16 a; s8 b", "a=$a:s32 b=$b:x8", b"\xff\xff\xfe", " a=-1 b=0xfe"),
    ("unsigned", "u16 a", "a=$a:s16", b"\xff\xff", " a=-1"),
    ("wide", "u64 a", "a=$a:u64", bytes(7) + b"\x40", " a=4611686018427387904"),
    ("no-arguments", "u32 a", "", b"\x41\0\0\0", ""),
    ("two-of-a-name", "u8 a; u8 a", "a=$a:u8", b"\1\2", " a=2"),
)
def test_records(ue: UserEvents, fields: str, arguments: str, payload: bytes, shown: str) -> None:
    """An eprobe on the event records each write; enabling the eprobe sets the enable word."""
    event = ue.event(fields)
    assert add_eprobe(ue, arguments).errno == ""
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
    assert enable_eprobe(ue).errno == ""
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    assert ue.tracefs.status() == ue.status_line(1, ue.name(), "ftrace")
    assert event.write(payload).value == 4 + len(payload)
    disable_eprobe(ue)
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
    assert ue.tracefs.records(ue.name("p")) == [f"{ue.name('p')}: (user_events.{ue.name()}){shown}"]
    assert remove_eprobe(ue).errno == ""


@case(spec="trace_eprobe.c:get_event_field: *(char *)addr", switch="eprobe-sign")
def test_signed_byte(ue: UserEvents) -> None:
    """A signed byte is fetched with its sign."""
    event = ue.event("s8 a; char b")
    add_eprobe(ue, "a=$a:s32 b=$b:s64")
    enable_eprobe(ue)
    assert event.write(b"\xff\x80").value == 6
    disable_eprobe(ue)
    numbers = ue.bug("eprobe-sign", fixed="a=-1 b=-128", present="a=255 b=128")
    assert ue.tracefs.records(ue.name("p")) == [
        f"{ue.name('p')}: (user_events.{ue.name()}) {numbers}"
    ]


@case(spec="trace_eprobe.c:get_event_field", profiles="6.4..", switch="eprobe-rel-loc")
@doc("string fetches text")
@variants(
    # The offset of a __rel_loc string counts from the end of the field; an eprobe counts from its
    # start, and reads four bytes too early.
    ("rel_loc", "__rel_loc char[] s", b"\4\0\6\0XY\0\0hello\0", "XY"),
    ("rel_loc-at-once", "__rel_loc char[] s", b"\0\0\6\0hello\0", ""),
    ("char", "char[8] s", b"hello\0\0\0", "hello"),
    ("data_loc", "__data_loc char[] s", b"\x0c\0\6\0hello\0", "hello"),
)
def test_strings(ue: UserEvents, fields: str, payload: bytes, present: str) -> None:
    """An eprobe fetches the text of arrays and dynamic fields."""
    event = ue.event(fields)
    assert add_eprobe(ue, "s=$s:string").errno == ""
    enable_eprobe(ue)
    assert event.write(payload).value == 4 + len(payload)
    disable_eprobe(ue)
    shown = ue.bug("eprobe-rel-loc", fixed="hello", present=present)
    assert ue.tracefs.records() == [f'{ue.name("p")}: (user_events.{ue.name()}) s="{shown}"']


@case(spec="trace_eprobe.c:__eprobe_trace_func", profiles="6.4..")
@doc("the event itself is not affected")
@variants(
    ("behind", False, ["e", "p"]),
    # A filtered record is committed last.
    ("in-front", True, ["p", "e"]),
)
def test_beside_the_event(ue: UserEvents, filtered: bool, order: list[str]) -> None:
    """An enabled event is recorded along with its eprobe; with a filter, after it."""
    event = ue.event("u8 a")
    add_eprobe(ue, "a=$a:u8")
    enable_eprobe(ue)
    event.enable()
    assert event.directory.enabled == "1*\n"
    if filtered:
        event.directory.set_filter("a == 1")
    event.write(b"\1")
    disable_eprobe(ue)
    assert event.directory.enabled == "1\n"
    lines = {"e": f"{ue.name()}: a=(1)", "p": f"{ue.name('p')}: (user_events.{ue.name()}) a=1"}
    assert ue.tracefs.records() == [lines[each] for each in order]


@case(spec="trace_eprobe.c:trace_eprobe_parse_filter", doc="if FILTER", needs="eprobe_conditions")
def test_condition(ue: UserEvents) -> None:
    """An eprobe with a condition records what matches; one on an unknown field is rejected."""
    event = ue.event("u8 a; u8 b")
    assert add_eprobe(ue, "b=$b:u8 if c == 1").errno == "EINVAL"
    assert add_eprobe(ue, "b=$b:u8 if a == 1").errno == ""
    enable_eprobe(ue)
    for payload in (b"\1\3", b"\2\4", b"\1\5"):
        event.write(payload)
    disable_eprobe(ue)
    head = f"{ue.name('p')}: (user_events.{ue.name()})"
    assert ue.tracefs.records(ue.name("p")) == [f"{head} b=3", f"{head} b=5"]


@case(spec="trace_events_trigger.c:check_user_trigger", needs="lasting_events")
@doc("a probe is an event of its own")
def test_hidden(ue: UserEvents) -> None:
    """An enabled eprobe is a trigger that `trigger` does not list, and keeps the event busy."""
    ue.tracefs.command(f"u:{ue.name()} u8 a\n")
    data = ue.open_data()
    add_eprobe(ue, "a=$a")
    enable_eprobe(ue)
    directory = ue.tracefs.directory(ue.name())
    assert directory.enabled == "0*\n"
    assert directory.triggers == ""
    assert data.delete(ue.name()).errno == "EBUSY"
    assert remove_eprobe(ue).errno == "EBUSY"
    disable_eprobe(ue)
    assert directory.enabled == "0\n"
    assert remove_eprobe(ue).errno == ""
    assert data.delete(ue.name()).errno == ""


@case(
    doc="@v6.12: Deleting: delete succeeds only without references, in user and kernel space",
    level="contract",
    needs="lasting_events",
    tier="quick",
    isolation="fatal",
    switch="eprobe-event-freed",
)
@spec("trace_events_user.c:destroy_user_event; trace_dynevent.c:trace_event_dyn_busy")
@variants("ioctl", "dynamic_events")
def test_holds_the_event(ue: UserEvents, by: str) -> None:
    """An event with an eprobe, enabled or not, cannot be deleted: EBUSY."""
    ue.tracefs.command(f"u:{ue.name()} u8 a\n")
    data = ue.open_data()
    assert add_eprobe(ue, "a=$a").errno == ""
    errno = ue.bug("eprobe-event-freed", fixed="EBUSY", present="")
    if by == "ioctl":
        assert data.delete(ue.name()).errno == errno
    else:
        assert ue.tracefs.command(f"-:{ue.name()} u8 a\n").errno == errno


@case(spec="trace_eprobe.c:eprobe_dyn_event_show", tier="quick", isolation="global")
@doc("dynamic_events lists probes as they were written")
def test_definition(ue: UserEvents) -> None:
    """dynamic_events lists event and eprobe, each in its own syntax."""
    ue.event("u8 a; u32 b")
    add_eprobe(ue, "one=$a two=$b:s32")
    event, probe = ue.name(), ue.name("p")
    assert ue.tracefs.dynamic_events(whole=True) == (
        f"u:{event} u8 a; u32 b\ne:uevt/{probe} user_events.{event} one=$a two=$b:s32\n"
    )
    remove_eprobe(ue)
    assert ue.tracefs.dynamic_events(whole=True) == f"u:{event} u8 a; u32 b\n"


@case(doc="SYSTEM.EVENT", tier="quick")
@variants(
    ("dash", "a-b", "EINVAL"),
    ("not-there", "", "ENODEV"),
    ("dot", "a.b", "EINVAL"),
    ("utf-8", "ä", "EINVAL"),
)
def test_refused(ue: UserEvents, name: str, errno: str) -> None:
    """An event with other characters than letters, digits and underscores cannot have an eprobe."""
    ue.open_data().register(ue.name(f"{name} u8 a") if name else ue.name("other"))
    assert add_eprobe(ue, event=ue.name(name or "e")).errno == errno


@case(doc="SYSTEM.EVENT", profiles="6.4..", needs="multi_format persist arguments_matched")
def test_not_on_one_format(ue: UserEvents) -> None:
    """Multi-format events have a dot in their name and cannot have an eprobe."""
    ue.event("u8 a", flags=2)
    name = ue.tracefs.status().partition("\n")[0]
    assert add_eprobe(ue, event=name, system=MULTI_SYSTEM).errno == "EINVAL"
    assert add_eprobe(ue, system=MULTI_SYSTEM).errno == "ENODEV"


@case(spec="parse_probe_vars", doc="$FIELD", tier="quick")
def test_unknown_field(ue: UserEvents) -> None:
    """An eprobe on an unknown field is rejected and does not affect the event."""
    event = ue.event("u8 a")
    added = add_eprobe(ue, "b=$b").errno
    assert added == ue.dated("eprobe_fields_parsed", since="EINVAL", before="ENOENT")
    assert enable_eprobe(ue).errno == "ENOENT"
    assert event.directory.enabled == "0\n"


@case(spec="trace_eprobe.c:eprobe_dyn_event_match", isolation="global")
@doc("-:[GRP/]ENAME; says nothing of what may follow")
@variants(
    ("slash", "user_events/{}", ""),
    ("dot", "user_events.{}", ""),
    ("argument", "user_events/{} a=$a", ""),
    ("all-arguments", "user_events.{} a=$a b=$b", ""),
    ("other-event", "user_events/{}x", "ENOENT"),
    ("part-of-system", "user_event/{}", "ENOENT"),
    ("longer-system", "user_eventsx/{}", "ENOENT"),
    ("no-event", "user_events/", "ENOENT"),
    ("no-separator", "user_events", "ENOENT"),
    ("other-argument", "user_events/{} b=$b", "ENOENT"),
    ("more-arguments", "user_events/{} a=$a b=$b c=$c", "ENOENT"),
)
def test_removed_by_its_event(ue: UserEvents, text: str, errno: str) -> None:
    """Removal of an eprobe may name its event, and its arguments from the first on."""
    if text.startswith("user_event/"):
        errno = ue.dated("eprobe_system_matched", since=errno, before="")
    ue.event("u8 a; u8 b")
    assert add_eprobe(ue, "a=$a b=$b").errno == ""
    assert ue.tracefs.command(f"-:uevt/{ue.name('p')} {text.format(ue.name())}\n").errno == errno
    assert enable_eprobe(ue).errno == ("" if errno else "ENOENT")
    if errno:
        disable_eprobe(ue)
        assert remove_eprobe(ue).errno == ""


@case(spec="trace_dynevent.c:dyn_event_release; trace_eprobe.c:eprobe_dyn_event_match")
@doc("-:[GRP/]ENAME; says nothing of a group alone")
@variants({"name": "-:{}\n", "group": "-:uevt/\n"})
def test_removed_by_less(ue: UserEvents, command: str) -> None:
    """Removal of an eprobe may leave out its group, or its name."""
    ue.event("u8 a")
    assert add_eprobe(ue, "a=$a").errno == ""
    errno = ""
    if "uevt" in command:
        errno = ue.dated("probes_deleted_by_system", since="", before="EINVAL")
    assert ue.tracefs.command(command.format(ue.name("p"))).errno == errno
    assert enable_eprobe(ue).errno == ("" if errno else "ENOENT")


@case(spec="trace_dynevent.c:dyn_event_release", needs="lasting_events")
@doc("-:[GRP/]ENAME; user_events.rst@v6.12: Deleting: silent about other events of the name")
def test_removed_with_an_event(ue: UserEvents) -> None:
    """Removal by name alone removes every event of that name, whatever its kind."""
    ue.event("u8 a")
    ue.tracefs.command(f"u:{ue.name('p')}\n")
    assert add_eprobe(ue, "a=$a").errno == ""
    assert ue.tracefs.command(f"-:{ue.name('p')}\n").errno == ""
    assert enable_eprobe(ue).errno == "ENOENT"
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(spec="trace_eprobe.c:__trace_eprobe_create: parse_error", needs="eprobe_conditions")
@doc("if FILTER; silent about errors")
@variants({"filter": "a=$a if (a == 1", "filter-and-field": "b=$b if (a == 1"})
def test_condition_refused(ue: UserEvents, arguments: str) -> None:
    """A condition that does not parse is EINVAL, before the arguments are looked at."""
    event = ue.event("u8 a")
    assert add_eprobe(ue, arguments).errno == "EINVAL"
    assert enable_eprobe(ue).errno == "ENOENT"
    assert event.directory.enabled == "0\n"


@case(spec="trace_events.c:event_enable_write", doc="Via the 'enable' toggle: 0 or 1")
def test_enable_numbers(ue: UserEvents) -> None:
    """Anything but the numbers 0 and 1 in `enable` of an eprobe is EINVAL."""
    event = ue.event("u8 a")
    assert add_eprobe(ue, "a=$a").errno == ""
    path = ue.tracefs.event_path(ue.name("p"), "enable", system=KPROBES)
    for text in ("2", "on", "-1"):
        assert ue.tracefs.write(path, text).errno == "EINVAL"
    assert event.directory.enabled == "0\n"


@case(spec="trace_eprobe.c:enable_eprobe: find_event_file", profiles="6.4..", isolation="global")
@doc("ftrace.rst@v6.12: Instances: events of an instance are its own")
def test_in_an_instance(ue: UserEvents) -> None:
    """An eprobe enabled in an instance records there, and nothing at the top."""
    instance, event = create_instance(ue), ue.event("u8 a")
    assert add_eprobe(ue, "a=$a:u8").errno == ""
    assert instance.enable(ue.name("p"), system=KPROBES).errno == ""
    assert (instance.directory(ue.name()).enabled, event.directory.enabled) == ("0*\n", "0\n")
    assert event.word.value == 1
    assert event.write(b"\7").value == 5
    assert instance.records() == [f"{ue.name('p')}: (user_events.{ue.name()}) a=7"]
    assert ue.tracefs.records() == []
    assert remove_eprobe(ue).errno == "EBUSY"
    assert instance.disable(ue.name("p"), system=KPROBES).errno == ""
    assert instance.directory(ue.name()).enabled == "0\n"
    assert event.word.value == 0
    instance.remove()
    assert remove_eprobe(ue).errno == ""


@case(profiles="6.4..", needs="remote_enable", isolation="fatal", switch="eprobe-two-instances")
@spec("trace_eprobe.c:enable_trace_eprobe")
@doc("ftrace.rst@v6.12: Instances: events of an instance are its own")
def test_two_instances(ue: UserEvents) -> None:
    """An eprobe enabled in two instances records in both."""
    instance, event = create_instance(ue), ue.event("u8 a")
    add_eprobe(ue, "a=$a:u8")
    instance.enable(ue.name("p"), system=KPROBES)
    enable_eprobe(ue)
    event.write(b"\7")
    line = f"{ue.name('p')}: (user_events.{ue.name()}) a=7"
    assert instance.records() == [line]
    assert ue.tracefs.records() == ue.bug("eprobe-two-instances", fixed=[line], present=[])


@case(profiles="6.4..", needs="remote_enable", isolation="fatal", bug="eprobe-two-instances")
@spec("trace_eprobe.c:disable_trace_eprobe")
@doc("ftrace.rst@v6.12: Instances: events of an instance are its own")
def test_off_in_two_instances(ue: UserEvents) -> None:
    """An eprobe disabled in both instances that had it enabled drops the event."""
    instance, event = create_instance(ue), ue.event("u8 a")
    add_eprobe(ue, "a=$a:u8")
    instance.enable(ue.name("p"), system=KPROBES)
    enable_eprobe(ue)
    assert event.word.value == 1
    instance.disable(ue.name("p"), system=KPROBES)
    assert event.word.value == 1
    assert disable_eprobe(ue).errno == ""
    assert event.word.value == ue.bug("eprobe-two-instances", fixed=0, present=1)


@case(spec="trace_eprobe.c:disable_eprobe: update_cond_flag", profiles="6.4..", isolation="global")
@doc("events.rst@v6.12: Event triggers: silent about record and trigger")
def test_looks_no_more(ue: UserEvents) -> None:
    """With an eprobe enabled, the event that fires `traceon` is not recorded; without one it is."""
    event = ue.event("u8 a")
    add_eprobe(ue, "a=$a:u8")
    event.enable()
    event.directory.trigger("traceon")
    assert enable_eprobe(ue).errno == ""
    ue.tracefs.write(TRACING_ON, "0\n")
    assert event.write(b"\1").value == 5
    assert ue.tracefs.records(ue.name()) == []
    assert disable_eprobe(ue).errno == ""
    ue.tracefs.write(TRACING_ON, "0\n")
    assert event.write(b"\2").value == 5
    assert ue.tracefs.records(ue.name()) == [f"{ue.name()}: a=(2)"]


@case(spec="trace_eprobe.c:find_and_get_event", doc="SYSTEM.EVENT")
@variants(
    ("shorter", "user_event"),
    ("longer", "user_events_"),
    ("multi", MULTI_SYSTEM),
    ("other", "sched"),
)
def test_other_system(ue: UserEvents, system: str) -> None:
    """An eprobe must name the system of its event in full, or else: ENODEV."""
    event = ue.event("u8 a")
    assert add_eprobe(ue, "a=$a", system=system).errno == "ENODEV"
    assert enable_eprobe(ue).errno == "ENOENT"
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
