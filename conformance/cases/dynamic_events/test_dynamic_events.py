"""dynamic_events: creating and listing events by text."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.client.files import File
from conformance.client.tracefs import DYNAMIC_EVENTS

case = surface("dynamic_events", level="behaviour", needs="lasting_events")


@case(spec="user_event_create, user_event_show")
@doc("Overview: a command is the text of the ioctl after u:; silent about what the file shows")
@variants(
    ("no_fields", "u:{}\n", "u:{}\n"),
    ("one_field", "u:{} u32 a\n", "u:{} u32 a\n"),
    ("no_newline", "u:{} s8 a", "u:{} s8 a\n"),
    ("spaces_in_front", "u:   {} u16 a\n", "u:{} u16 a\n"),
    ("tab_in_front", "u:\t{} u16 a\n", "u:{} u16 a\n"),
    ("unspaced_fields", "u:{} u32 a;u64 b\n", "u:{} u32 a; u64 b\n"),
    ("spaced_fields", "u:{} u32 a;   u64 b\n", "u:{} u32 a; u64 b\n"),
    ("semicolon_at_the_end", "u:{} u32 a;\n", "u:{} u32 a\n"),
    ("empty_fields", "u:{} ;;u32 a; ;u8 b;;\n", "u:{} u32 a; u8 b\n"),
    ("space_and_no_fields", "u:{} \n", "u:{}\n"),
    ("unsigned", "u:{} unsigned int a; int b\n", "u:{} unsigned int a; int b\n"),
    ("array", "u:{} char[20] a; char[0x14] b\n", "u:{} char[20] a; char[0x14] b\n"),
    ("struct", "u:{}  struct s a 20;u8 b\n", "u:{} struct s a 20; u8 b\n"),
    ("struct_size_rewritten", "u:{} struct s a +020\n", "u:{} struct s a 20\n"),
    (
        "locations",
        "u:{} __data_loc char[] a;__rel_loc u32 b\n",
        "u:{} __data_loc char[] a; __rel_loc u32 b\n",
    ),
    ("colon_in_fields", "u:{} u32 a:b\n", "u:{} u32 a:b\n"),
)
def test_create_and_show(ue: UserEvents, command: str, shown: str) -> None:
    """A command creates an event, which is listed with its fields in canonical spelling."""
    text = command.format(ue.name())
    assert ue.tracefs.command(text).value == len(text)
    assert ue.tracefs.dynamic_events() == shown.format(ue.name())


@case(spec="user_event_show", doc="Overview: silent about what the file shows", tier="full")
def test_shows_registrations(ue: UserEvents) -> None:
    """Events are listed in the order of creation, however they were created."""
    data = ue.event("u32 a;char[8] b", "z").data
    ue.tracefs.command("u:" + ue.name("m") + " struct s x 3\n")
    data.register(ue.name("a"))
    assert ue.tracefs.dynamic_events().replace(ue.prefix, "") == (
        "u:z u32 a; char[8] b\nu:m struct s x 3\nu:a\n"
    )


@case(spec="user_event_show, destroy_user_event", tier="full", isolation="global")
@doc("Overview: silent about what the file shows")
def test_whole_list(ue: UserEvents) -> None:
    """The file is empty without events, and does not list a deleted event."""
    assert ue.tracefs.dynamic_events(whole=True) == ""
    ue.tracefs.command("u:one u32 a\nu:two\nu:three u8 b\n")
    assert ue.tracefs.dynamic_events(whole=True) == "u:one u32 a\nu:two\nu:three u8 b\n"
    ue.tracefs.command("-:two\n")
    assert ue.tracefs.dynamic_events(whole=True) == "u:one u32 a\nu:three u8 b\n"
    ue.tracefs.command("-:one u32 a\n-:three u8 b\n")
    assert ue.tracefs.dynamic_events(whole=True) == ""


@case(level="contract", profiles="6.4..", needs="persist auto_delete", tier="full")
@spec("user_event_create (USER_EVENT_REG_PERSIST)")
@doc("Overview: an event registered through dynamic_events persists")
def test_stays(ue: UserEvents) -> None:
    """An event created by a command persists after a program has registered and released it."""
    ue.tracefs.command("u:" + ue.name() + " u32 a\n")
    data = ue.open_data()
    event = data.register(ue.name() + " u32 a")
    passing = data.register(ue.name("passing"))
    data.unregister(event.word)
    data.unregister(passing.word)
    data.close()
    assert ue.tracefs.status(eventually=True) == ue.name() + "\n"


@case(spec="user_events_write_core, user_events_ref_add", tier="full")
@doc("Registering: write_index belongs to the descriptor that registered; silent about others")
def test_no_descriptor(ue: UserEvents) -> None:
    """An event created by a command has no write index until a descriptor registers it."""
    ue.tracefs.command("u:" + ue.name() + "\n")
    data = ue.open_data()
    assert data.write_event(0).errno == "ENOENT"
    assert data.register(ue.name()).index == 0
    assert data.write_event(0).errno == ue.dated("ebadf_when_disabled", since="EBADF", before="")


@case(spec="find_user_event", doc="Overview: silent about a command for an existing event")
@variants(
    ("same_text", "u:{} u32 a; u64 b\n", True),
    ("unspaced", "u:{} u32 a;u64 b\n", False),
    ("more_spaces", "u:{} u32   a;\tu64 b\n", True),
    ("semicolon_at_the_end", "u:{} u32 a; u64 b;\n", True),
)
def test_existing_equal(ue: UserEvents, again: str, spaced: bool) -> None:
    """A command with an existing event's fields changes nothing; before 6.10 only if spaced."""
    ue.tracefs.command("u:" + ue.name() + " u32 a; u64 b\n")
    unlike = ue.dated("arguments_matched", since="EADDRINUSE", before="")
    errno = "" if spaced else ue.dated("unspaced_fields_match", since="", before=unlike)
    text = again.format(ue.name())
    seen = ue.tracefs.command(text)
    assert (seen.value, seen.errno) == (-1 if errno else len(text), errno)
    assert ue.tracefs.dynamic_events() == "u:" + ue.name() + " u32 a; u64 b\n"


@case(spec="find_user_event, user_event_parse")
@doc("Registering: without MULTI_FORMAT another format is blocked; silent about how")
@variants(
    ("other_type", "u:{} s32 a\n", False),
    ("other_name", "u:{} u32 b\n", False),
    ("one_more", "u:{} u32 a; u32 b\n", False),
    ("none", "u:{}\n", False),
    # Fields are compared before they are parsed; text flags are rejected before that.
    ("bad_field", "u:{} nonsense a\n", False),
    ("text_flag", "u:{}:flag s32 a\n", True),
)
def test_existing_different(ue: UserEvents, again: str, flagged: bool) -> None:
    """A command for an existing event with other fields changes nothing, and fails since 6.4."""
    ue.tracefs.command("u:" + ue.name() + " u32 a\n")
    unlike = ue.dated("arguments_matched", since="EADDRINUSE", before="")
    refused = ue.dated("text_flags_refused", since="EINVAL", before=unlike)
    assert ue.tracefs.command(again.format(ue.name())).errno == (refused if flagged else unlike)
    assert ue.tracefs.dynamic_events() == "u:" + ue.name() + " u32 a\n"


@case(spec="user_event_create, find_user_event", profiles="5.18..6.3")
@doc("Overview: silent about a command for an existing event")
def test_existing_in_use(ue: UserEvents) -> None:
    """A command for an event that a program registered succeeds, and does not hold the event."""
    data = ue.event("u32 a").data
    assert ue.tracefs.command("u:" + ue.name() + " u32 a\n").errno == ""
    assert data.delete(ue.name()).errno == "EBUSY"
    data.close()
    assert ue.open_data().delete(ue.name()).value == 0


@case(spec="user_event_create, find_user_event", profiles="6.4..", needs="persist auto_delete")
@doc("Overview: an event made by a command persists; silent about one that exists")
def test_existing_registration(ue: UserEvents) -> None:
    """A command for an event that a program registered succeeds, but does not make it persist."""
    event = ue.event("u32 a")
    assert ue.tracefs.command("u:" + ue.name() + " u32 a\n").errno == ""
    event.unregister()
    event.data.close()
    assert ue.tracefs.dynamic_events(eventually=True) == ""


@case(level="detail")
@spec("trace_dynevent.c:create_dyn_event; trace_events_user.c:user_event_parse")
@doc("Overview: a command is the text of the ioctl after u:; silent about the error of others")
@variants(
    ("no_prefix", "{} u32 a\n", ""),
    ("no_colon", "u {} u32 a\n", ""),
    ("capital", "U:{} u32 a\n", ""),
    ("other_prefix", "x:{} u32 a\n", ""),
    ("old_prefix", "ue:{} u32 a\n", ""),
    ("space_before_prefix", " u:{} u32 a\n", ""),
    ("text_flag", "u:{}:BPF_ITER u32 a\n", "u:{} u32 a\n"),
    ("empty_text_flag", "u:{}: u32 a\n", "u:{} u32 a\n"),
    ("unknown_type", "u:{} long a\n", ""),
    ("field_without_name", "u:{} u32\n", ""),
    ("space_before_comment", "u:{} u32 a # why\n", ""),
)
def test_refused(ue: UserEvents, command: str, ignored: str) -> None:
    """Text that is no command or defines no event fails with EINVAL and creates nothing."""
    # The event created where flags are cut off and ignored.
    lines = ue.dated("text_flags_refused", since="", before=ignored.format(ue.name()))
    assert ue.tracefs.command(command.format(ue.name())).errno == ("" if lines else "EINVAL")
    assert ue.tracefs.dynamic_events() == lines


@case(spec="user_event_set_call_visible", level="contract")
@doc("Registering: events show up in tracefs as events/user_events/[name]")
def test_directory(ue: UserEvents) -> None:
    """An event created by a command has its directory at once, and none after deletion."""
    ue.tracefs.command("u:" + ue.name() + " u32 a\n")
    assert ue.tracefs.enabled(ue.name()).text == "0\n"
    ue.tracefs.command("-:" + ue.name() + " u32 a\n")
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"


@case(spec="fs/read_write.c:vfs_write", level="detail", needs="", tier="full", isolation="none")
@doc("Overview: silent about the mode of the descriptor")
def test_read_only_descriptor(ue: UserEvents) -> None:
    """Writing a command to a read-only descriptor fails with EBADF."""
    file = File(ue.process, DYNAMIC_EVENTS, os.O_RDONLY)
    assert file.write(b"u:" + ue.name().encode()).errno == "EBADF"


@case(level="detail", needs="", isolation="none")
@spec("trace_dynevent.c:init_dynamic_event; trace_events_user.c:create_user_tracefs")
@doc("Overview: silent about the modes of the files")
@variants("dynamic_events", "user_events_data")
def test_file_mode(ue: UserEvents, file: str) -> None:
    """Owner and group can read the file; only the owner can write it."""
    assert ue.tracefs.mode("/sys/kernel/tracing/" + file) == 0o640
