"""set_event: events are enabled by name, as trace-cmd and the shell do."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.instances import create_instance

SPEC = "trace_events.c:__ftrace_set_clr_event_nolock"
DOC = "events.rst@v6.12: Via the 'set_event' interface: names are those of available_events"
case = surface("set_event", SPEC, DOC, level="detail", tier="full", isolation="global")


@case(tier="quick")
@doc("Via the 'set_event' interface: SYSTEM:NAME, or a star, or one of both, says what is enabled")
@variants(
    ("system_and_name", "user_events:{}"),
    ("any_system", "*:{}"),
    ("no_system", ":{}"),
    ("name", "{}"),
    ("space_before", "  user_events:{}"),
    ("newline", "user_events:{}\n"),
)
def test_by_name(ue: UserEvents, pattern: str) -> None:
    """An event is enabled by its name, with or without its system, and no other is."""
    instance, event = create_instance(ue), ue.event("u16 x", "a")
    event.data.register(ue.name("ab") + " u16 x")
    text = pattern.format(ue.name("a"))
    assert instance.write(instance.path("set_event"), text).value == len(text)
    assert instance.read(instance.path("set_event")).text == f"user_events:{ue.name('a')}\n"
    assert instance.enabled(ue.name("a")).text == "1\n"
    assert instance.enabled(ue.name("ab")).text == "0\n"
    assert ue.tracefs.enabled(ue.name("a")).text == "0\n"
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)


@case(spec="ftrace_event_write, ftrace_set_clr_event")
@doc("Via the 'set_event' interface: an exclamation mark in front disables")
@variants(
    ("name", "!user_events:{a}", ["b"]),
    ("any_system", "!*:{a}", ["b"]),
    ("system", "!user_events:*", []),
    ("system_alone", "!user_events", []),
)
def test_negated(ue: UserEvents, pattern: str, left: list[str]) -> None:
    """A name after an exclamation mark is disabled, and the enable word is cleared."""
    instance, event = create_instance(ue), ue.event("u16 x", "a")
    event.data.register(ue.name("b") + " u16 x")
    instance.enable(ue.name("a"))
    instance.enable(ue.name("b"))
    assert instance.write(instance.path("set_event"), pattern.format(a=ue.name("a"))).errno == ""
    shown = "".join(f"user_events:{ue.name(stem)}\n" for stem in left)
    assert instance.read(instance.path("set_event")).text == shown
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)


@case(doc="Via the 'set_event' interface: all events of a system are enabled by it alone")
@variants(("star", "user_events:*"), ("colon", "user_events:"), ("alone", "user_events"))
def test_system(ue: UserEvents, pattern: str) -> None:
    """The name of the system enables all its current user events, and no later one."""
    instance = create_instance(ue)
    data = ue.register("a u16 x", "b u16 x")
    assert instance.write(instance.path("set_event"), pattern).value == len(pattern)
    data.register("c u16 x")
    assert instance.read(instance.path("set_event")).text == "user_events:b\nuser_events:a\n"


@case
@variants(
    ("name", "user_events:{}x"),
    ("system", "user_event:{}"),
    ("other_system", "uevt_none:{}"),
    ("name_alone", "{}x"),
    ("part_of_a_name", "user_events:t"),
    ("exclamation_alone", "!"),
    ("negated", "!user_events:{}x"),
    ("two_exclamations", "!!user_events:{}"),
    ("with_fields", "user_events:{};u16"),
    ("upper_case", "USER_EVENTS:{}"),
)
def test_unknown(ue: UserEvents, pattern: str) -> None:
    """A name that no event has is EINVAL, and nothing is enabled."""
    instance = create_instance(ue)
    ue.event("u16 x")
    assert instance.write(instance.path("set_event"), pattern.format(ue.name())).errno == "EINVAL"
    assert instance.read(instance.path("set_event")).text == ""
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(spec="trace.c:trace_get_user")
@doc("Via the 'set_event' interface: silent about several names in one write")
def test_one_word(ue: UserEvents) -> None:
    """A write consumes one name and returns what it consumed; white space alone does nothing."""
    instance = create_instance(ue)
    ue.register("a u16 x", "b u16 x")
    assert instance.write(instance.path("set_event"), "user_events:a user_events:b").value == 14
    assert instance.read(instance.path("set_event")).text == "user_events:a\n"
    assert instance.write(instance.path("set_event"), " \n\t").value == 3
    assert instance.read(instance.path("set_event")).text == "user_events:a\n"


@case(spec="trace.c:trace_get_user", doc="Via the 'set_event' interface: silent about a NUL")
def test_nul(ue: UserEvents) -> None:
    """A NUL ends a name, and one without a name before it does nothing."""
    instance = create_instance(ue)
    ue.open_data().register("a u16 x")
    assert instance.write(instance.path("set_event"), "\0user_events:a").value == 1
    assert instance.read(instance.path("set_event")).text == ""
    assert instance.write(instance.path("set_event"), "user_events:a\0").value == 14
    assert instance.read(instance.path("set_event")).text == "user_events:a\n"


@case(spec="ftrace_event_set_open, ftrace_clear_events")
@doc("Via the 'set_event' interface: opening the file with O_TRUNC disables all events")
@variants("instance", "top")
def test_truncated(ue: UserEvents, where: str) -> None:
    """Opening the file with O_TRUNC disables all events of its instance, and of no other."""
    instance, event = create_instance(ue), ue.event("u16 x")
    emptied, kept = (instance, ue.tracefs) if where == "instance" else (ue.tracefs, instance)
    emptied.enable(ue.name())
    kept.enable(ue.name())
    flags = os.O_WRONLY | os.O_TRUNC
    assert emptied.write(emptied.path("set_event"), "\n", flags).value == 1
    assert (emptied.enabled(ue.name()).text, kept.enabled(ue.name()).text) == ("0\n", "1\n")
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    assert kept.write(kept.path("set_event"), "\n", flags).value == 1
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
    assert ue.tracefs.status() == ue.status_line(1, ue.name())


@case(spec="s_next, t_show; trace_events.c:__trace_add_event_dirs, trace_create_new_event")
@doc("Via the 'set_event' interface: silent about the order")
def test_order(ue: UserEvents) -> None:
    """The newest event is listed first; those older than the instance follow, oldest first."""
    data = ue.register("a u16 x", "b u16 x")
    instance = create_instance(ue)
    data.register("c u16 x")
    data.register("d u16 x")
    for name in ("c", "b", "a", "d"):
        instance.enable(name)
        ue.tracefs.enable(name)
    shown = instance.read(instance.path("set_event")).text
    assert shown == "user_events:d\nuser_events:c\nuser_events:a\nuser_events:b\n"
    shown = ue.tracefs.read(ue.tracefs.path("set_event")).text
    assert shown == "user_events:d\nuser_events:c\nuser_events:b\nuser_events:a\n"


@case(spec="ftrace_event_write, ftrace_set_clr_event; trace_events_user.c:user_event_reg")
@doc("Via the 'set_event' interface: SYSTEM:NAME enables an event")
def test_enabled_at_the_top(ue: UserEvents) -> None:
    """An event enabled by set_event is shown by `enable` and recorded, and vice versa."""
    data = ue.register(a="u16 x", b="u16 x")
    path = ue.tracefs.path("set_event")
    assert ue.tracefs.write(path, f"user_events:{ue.name('a')}\n").errno == ""
    assert ue.tracefs.enabled(ue.name("a")).text == "1\n"
    ue.tracefs.enable(ue.name("b"))
    assert ue.tracefs.read(path).text == f"user_events:{ue.name('b')}\nuser_events:{ue.name('a')}\n"
    assert data.write_event(0, b"\1\0").value == 6
    assert ue.tracefs.records() == [ue.line("x=0x1 (1)", name="a", dump="01 00")]
    ue.tracefs.write(path, f"!user_events:{ue.name('a')}\n")
    ue.tracefs.disable(ue.name("b"))
    assert ue.tracefs.read(path).text == ""


@case(profiles="6.4..", needs="multi_format")
@spec("__ftrace_set_clr_event_nolock; trace_events_user.c:user_event_set_tp_name")
@doc("@v6.12: formats of one name have names of their own")
@variants(
    ("system", "user_events_multi:*", (1, 1, 0)),
    ("registered_name", "{}", (0, 0, 1)),
    ("any_system", "*:{}", (0, 0, 1)),
)
def test_multi_format(ue: UserEvents, pattern: str, words: tuple[int, int, int]) -> None:
    """Multi-format events are found by their system, not by the name they share."""
    instance = create_instance(ue)
    data = ue.open_data()
    events = [
        data.register(ue.name() + " u16 x", flags=2),
        data.register(ue.name() + " u32 x", flags=2),
        data.register(ue.name() + " u32 x"),
    ]
    assert instance.write(instance.path("set_event"), pattern.format(ue.name())).errno == ""
    assert tuple(event.word.value for event in events) == words


@case(spec="remove_event_from_tracers", needs="lasting_events")
def test_deleted_event(ue: UserEvents) -> None:
    """A deleted event cannot be enabled by name; a new one can, and starts disabled."""
    instance = create_instance(ue)
    ue.tracefs.command(f"u:{ue.name()}\n")
    text = f"user_events:{ue.name()}"
    assert instance.write(instance.path("set_event"), text).errno == ""
    assert instance.write(instance.path("set_event"), "!" + text).errno == ""
    assert ue.open_data().delete(ue.name()).value == 0
    assert instance.write(instance.path("set_event"), text).errno == "EINVAL"
    ue.tracefs.command(f"u:{ue.name()}\n")
    assert instance.read(instance.path("set_event")).text == ""
    assert instance.write(instance.path("set_event"), text).errno == ""
    assert instance.read(instance.path("set_event")).text == f"{text}\n"


@case(spec="EVENT_BUF_SIZE; trace.c:trace_get_user")
@doc("Via the 'set_event' interface: SYSTEM:NAME enables an event; says nothing of lengths")
@variants(
    ("longest", "user_events:{}", 127, ""),
    ("longest-newline", "user_events:{}\n", 127, ""),
    ("too-long", "user_events:{}", 128, "EINVAL"),
    ("too-long-newline", "user_events:{}\n", 128, "EINVAL"),
    ("name", "{}", 127, ""),
)
def test_word_length(ue: UserEvents, pattern: str, length: int, errno: str) -> None:
    """A name may have up to 127 characters; enabling an event with a longer one is EINVAL."""
    name = "n" * (length - len(pattern.removesuffix("\n").format("")))
    event = ue.open_data().register(f"{name} u16 x")
    path = ue.tracefs.path("set_event")
    assert ue.tracefs.write(path, pattern.format(name)).errno == errno
    assert ue.tracefs.read(path).text == ("" if errno else f"user_events:{name}\n")
    if ue.profile.has("remote_enable"):
        assert event.word.value == (0 if errno else 1)


@case(spec="s_next: EVENT_FILE_FL_ENABLED")
@doc("Via the 'set_event' interface: reading shows what is enabled; of triggers it says nothing")
def test_with_a_trigger(ue: UserEvents) -> None:
    """An event with only a trigger is listed, and cannot be disabled by name."""
    event = ue.event("u16 x")
    path = ue.tracefs.path("set_event")
    assert event.directory.trigger("traceon").errno == ""
    assert ue.tracefs.read(path).text == f"user_events:{ue.name()}\n"
    assert ue.tracefs.write(path, f"!user_events:{ue.name()}").errno == ""
    assert event.directory.enabled == "0*\n"
    assert ue.tracefs.read(path).text == f"user_events:{ue.name()}\n"
    event.directory.trigger("!traceon")
    assert ue.tracefs.read(path).text == ""


@case(profiles="6.4..", needs="multi_format")
@doc("Via the 'set_event' interface: a star, or no system, means all of them")
@variants({"star": "*:{}", "nothing": ":{}", "name": "{}", "negated": "!*:{}"})
def test_one_name_in_two_systems(ue: UserEvents, pattern: str) -> None:
    """All events of a name are enabled or disabled, one in each system."""
    instance = create_instance(ue)
    first = ue.event("u16 x", flags=2)
    name = ue.tracefs.status().partition("\n")[0]
    second = first.data.register(f"{name} u32 x")
    path = instance.path("set_event")
    if pattern[0] == "!":
        assert instance.write(path, f"*:{name}").errno == ""
    assert instance.write(path, pattern.format(name)).errno == ""
    assert (first.word.value, second.word.value) == ((0, 0) if pattern[0] == "!" else (1, 1))
