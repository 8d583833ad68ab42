"""`enable` of a system and of all events: what it shows and which words it changes."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.instances import create_instance
from conformance.client.files import File

SPEC = "trace_events.c:system_enable_write"
DOC = "events.rst@v6.12: Via the 'enable' toggle: 0, 1, X or ? is shown"
case = surface("group_enable", SPEC, DOC, level="detail", tier="full", isolation="global")

GROUP = "events/user_events/enable"
MULTI = "events/user_events_multi/enable"
ALL = "events/enable"


@case(spec="system_enable_read")
@variants("top", "instance")
def test_shown(ue: UserEvents, where: str) -> None:
    """With none, some or all user events enabled it reads 0, X or 1, for its own instance only."""
    instance = create_instance(ue)
    files, others = (ue.tracefs, instance) if where == "top" else (instance, ue.tracefs)
    data = ue.register("a", "b")
    seen = [files.read(files.path(GROUP)).text]
    for name in ("a", "b"):
        files.enable(name)
        seen.append(files.read(files.path(GROUP)).text)
    data.register("c")
    seen.append(files.read(files.path(GROUP)).text)
    assert seen == ["0\n", "X\n", "1\n", "X\n"]
    assert others.read(others.path(GROUP)).text == "0\n"
    files.disable("a")
    files.disable("b")
    assert files.read(files.path(GROUP)).text == "0\n"


@case
@variants(("none", ()), ("one", ("a",)), ("all", ("a", "b")))
def test_written(ue: UserEvents, enabled_before: tuple[str, ...]) -> None:
    """Writing 1 enables all existing user events, 0 disables them; their enable words follow."""
    data = ue.open_data()
    events = [data.register("a u16 x"), data.register("b u16 x")]
    for name in enabled_before:
        ue.tracefs.enable(name)
    assert ue.tracefs.write(ue.tracefs.path(GROUP), "1\n").value == 2
    assert ue.tracefs.read(ue.tracefs.path(GROUP)).text == "1\n"
    if ue.profile.has("remote_enable"):
        assert [event.word.value for event in events] == [1, 1]
    assert (data.write_event(0, b"\1\0").value, data.write_event(1, b"\1\0").value) == (6, 6)
    later = data.register("c u16 x")
    assert ue.tracefs.enabled("c").text == "0\n"
    assert ue.tracefs.write(ue.tracefs.path(GROUP), "0").value == 1
    assert [ue.tracefs.enabled(name).text for name in ("a", "b", "c")] == ["0\n", "0\n", "0\n"]
    if ue.profile.has("remote_enable"):
        assert [event.word.value for event in (*events, later)] == [0, 0, 0]
    assert "\nBusy: 0\n" in ue.tracefs.status(whole=True)


@case
def test_in_an_instance(ue: UserEvents) -> None:
    """Writing 0 in an instance does not affect the top instance, and vice versa."""
    instance = create_instance(ue)
    event = ue.open_data().register("a u16 x")
    assert instance.write(instance.path(GROUP), "1").value == 1
    assert ue.tracefs.enabled("a").text == "0\n"
    assert ue.tracefs.write(ue.tracefs.path(GROUP), "0").value == 1
    assert instance.enabled("a").text == "1\n"
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    ue.tracefs.enable("a")
    assert instance.write(instance.path(GROUP), "0").value == 1
    assert ue.tracefs.enabled("a").text == "1\n"
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)


@case(spec="system_enable_write, event_enable_write; lib/kstrtox.c:kstrtoull")
@variants(
    ("group.two", GROUP, "2"),
    ("group.word", GROUP, "on"),
    ("group.shown", GROUP, "X"),
    ("group.negative", GROUP, "-1"),
    ("group.hexadecimal", GROUP, "0x1"),
    ("group.two_numbers", GROUP, "1 0"),
    ("all.two", ALL, "2"),
    ("event.two", "events/user_events/a/enable", "2"),
    ("event.word", "events/user_events/a/enable", "y"),
    ("event.soft", "events/user_events/a/enable", "1*"),
    ("event.hexadecimal", "events/user_events/a/enable", "0x1"),
    ("event.nul-first", "events/user_events/a/enable", "\0001"),
    ("event.32-bits", "events/user_events/a/enable", "4294967297"),
)
def test_refused(ue: UserEvents, file: str, text: str) -> None:
    """Anything but the numbers 0 and 1 is EINVAL, and nothing changes."""
    event = ue.open_data().register("a u16 x")
    assert ue.tracefs.write(ue.tracefs.path(file), text).errno == "EINVAL"
    assert ue.tracefs.enabled("a").text == "0\n"
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)


@case(spec="system_enable_write, event_enable_write; lib/kstrtox.c:kstrtoul_from_user")
@variants({"group": GROUP, "event": "events/user_events/a/enable"})
def test_forms_of_a_number(ue: UserEvents, file: str) -> None:
    """A number ends at a NUL or after 66 characters; beyond 64 bits it is ERANGE."""
    path = ue.tracefs.path(file)
    ue.open_data().register("a u16 x")
    for text in ("1\0", "1\n\0x", "+1", f"{'0' * 65}1x"):
        assert ue.tracefs.write(path, text).value == len(text)
        assert ue.tracefs.enabled("a").text == "1\n"
        assert ue.tracefs.write(path, "0").value == 1
    for text in ("18446744073709551616", "18446744073709551616x"):
        assert ue.tracefs.write(path, text).errno == "ERANGE"
    assert ue.tracefs.enabled("a").text == "0\n"


@case(spec="event_subsystem_dir, remove_subsystem", needs="lasting_events")
@doc("@v6.12: Registering: events show up below user_events")
def test_directory(ue: UserEvents) -> None:
    """The system's directory is created with the first user event and removed with the last."""
    path = ue.tracefs.path(GROUP)
    assert ue.tracefs.read(path).errno == "ENOENT"
    ue.tracefs.command("u:a\n")
    ue.tracefs.command("u:b\n")
    assert ue.tracefs.mode(path) == 0o640
    ue.tracefs.command("-:a\n")
    assert ue.tracefs.read(path).text == "0\n"
    ue.tracefs.command("-:b\n")
    assert (ue.tracefs.read(path).errno, ue.tracefs.write(path, "1").errno) == ("ENOENT", "ENOENT")
    ue.tracefs.command("u:c\n")
    assert ue.tracefs.read(path).text == "0\n"


@case(spec="system_enable_read; trace_events.c:subsystem_open", needs="lasting_events")
def test_outlives_the_events(ue: UserEvents) -> None:
    """A descriptor opened before the last event was deleted reads `?` and enables nothing."""
    ue.tracefs.command("u:a\n")
    file = File(ue.process, ue.tracefs.path(GROUP), os.O_RDWR)
    ue.tracefs.command("-:a\n")
    assert file.read().text == "?\n"
    assert file.write(b"1").errno == "EINVAL"
    ue.tracefs.command("u:b\n")
    assert ue.tracefs.enabled("b").text == "0\n"


@case(spec="system_enable_read")
@variants("top", "instance")
def test_all_events(ue: UserEvents, where: str) -> None:
    """`enable` of all events reads X if one user event is enabled; writing 0 disables it."""
    instance = create_instance(ue)
    files = ue.tracefs if where == "top" else instance
    data = ue.open_data()
    event = data.register("a u16 x")
    assert files.read(files.path(ALL)).text == "0\n"
    files.enable("a")
    assert files.read(files.path(ALL)).text == "X\n"
    assert files.write(files.path(ALL), "0\n").value == 2
    assert (files.read(files.path(ALL)).text, files.enabled("a").text) == ("0\n", "0\n")
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
    errno = ue.dated("ebadf_when_disabled", since="EBADF", before="")
    assert data.write_event(0, b"\1\0").errno == errno


@case(profiles="6.4..", needs="multi_format")
@spec("system_enable_write; trace_events_user.c:user_event_group_system_multi_name")
@doc("@v6.12: multi-format events have a system of their own")
def test_multi_format(ue: UserEvents) -> None:
    """The two systems of user events are enabled and shown separately."""
    data = ue.open_data()
    single = data.register("a u16 x")
    assert ue.tracefs.read(ue.tracefs.path(MULTI)).errno == "ENOENT"
    first = data.register("a u16 x", flags=2)
    second = data.register("a u32 x", flags=2)
    assert ue.tracefs.write(ue.tracefs.path(MULTI), "1").value == 1
    assert [each.word.value for each in (single, first, second)] == [0, 1, 1]
    assert ue.tracefs.read(ue.tracefs.path(GROUP)).text == "0\n"
    assert ue.tracefs.write(ue.tracefs.path(GROUP), "1").value == 1
    assert ue.tracefs.write(ue.tracefs.path(MULTI), "0").value == 1
    assert [each.word.value for each in (single, first, second)] == [1, 0, 0]
    assert ue.tracefs.read(ue.tracefs.path(GROUP)).text == "1\n"
    assert ue.tracefs.write(ue.tracefs.path(GROUP), "0").value == 1


@case(level="behaviour", needs="lasting_events")
@doc("@v6.12: Deleting: delete succeeds only without references; silent about groups")
@spec("trace_events_user.c:user_event_reg; trace_events.c:system_enable_write")
def test_holds_events(ue: UserEvents) -> None:
    """Every event enabled as a group is in use: EBUSY until disabled."""
    ue.tracefs.command("u:a\n")
    ue.tracefs.command("u:b\n")
    assert ue.tracefs.write(ue.tracefs.path(GROUP), "1").errno == ""
    data = ue.open_data()
    assert (data.delete("a").errno, data.delete("b").errno) == ("EBUSY", "EBUSY")
    assert ue.tracefs.write(ue.tracefs.path(GROUP), "0").errno == ""
    assert (data.delete("a").value, data.delete("b").value) == (0, 0)


@case(spec="system_enable_read: EVENT_FILE_FL_ENABLED")
@doc("Via the 'enable' toggle: 0, 1, X or ? is shown; of triggers it says nothing")
@variants("top", "instance")
def test_with_a_trigger(ue: UserEvents, where: str) -> None:
    """An event with only a trigger counts as enabled, though its own file reads 0*."""
    instance = create_instance(ue)
    files = ue.tracefs if where == "top" else instance
    ue.register("a u16 x", "b u16 x")
    directory = files.directory("a")
    assert directory.trigger("traceon").errno == ""
    assert files.read(files.path(GROUP)).text == "X\n"
    assert files.directory("b").trigger("traceon").errno == ""
    assert files.read(files.path(GROUP)).text == "1\n"
    assert files.write(files.path(GROUP), "0").value == 1
    assert files.read(files.path(GROUP)).text == "1\n"
    assert directory.enabled == "0*\n"
    directory.trigger("!traceon")
    assert files.read(files.path(GROUP)).text == "X\n"
    files.directory("b").trigger("!traceon")
    assert files.read(files.path(GROUP)).text == "0\n"
