"""dynamic_events: deletion by command and by truncation, and the permissions for both."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.client.files import File
from conformance.client.perf import open_perf
from conformance.client.tracefs import DYNAMIC_EVENTS

SPEC = "user_event_free"
DOC = "Deleting: dynamic_events deletes a specific format of an event"
case = surface("dynamic_events", SPEC, DOC, level="contract", needs="lasting_events", tier="full")

MATCHED = "deletion_arguments_matched"
BY_SYSTEM = "probes_deleted_by_system"


@case(spec="user_event_match; trace_dynevent.c:dyn_event_release", level="behaviour", tier="quick")
@doc("Deleting: dynamic_events deletes a specific format of an event; silent about the command")
@variants(
    ("name", "", "-:{}\n"),
    ("system", "", "-:user_events/{}\n"),
    ("bang", "", "!u:{}\n"),
    ("bang_nothing", "", "!:{}\n"),
    ("bang_any", "", "!whatever:{}\n"),
    ("bang_system", "", "!u:user_events/{}\n"),
    ("fields", " u32 a; u64 b", "-:{} u32 a; u64 b\n"),
    ("fields_and_semicolon", " u32 a; u64 b", "-:{} u32 a; u64 b;\n"),
    ("fields_many_spaces", " u32 a; u64 b", "-:{}  u32\ta;   u64 b\n"),
    ("fields_and_system", " u32 a", "!u:user_events/{} u32 a\n"),
    ("struct", " struct s a 20", "-:{} struct s a 20\n"),
    ("array", " char[0x14] a", "-:{} char[0x14] a\n"),
)
def test_delete(ue: UserEvents, fields: str, command: str) -> None:
    """A deletion command names the event and its fields; prefix and system may vary."""
    ue.tracefs.command("u:" + ue.name() + fields + "\n")
    # Old kernels matched a struct without its size.
    sizeless = command.replace("struct s a 20", "struct s a")
    text = ue.dated("struct_size_matched", since=command, before=sizeless).format(ue.name())
    assert ue.tracefs.command(text).value == len(text)
    assert ue.tracefs.dynamic_events() == ""
    assert ue.tracefs.status() == ""


@case(level="detail", tier="quick")
@spec("trace_dynevent.c:dyn_event_release; trace_events_user.c:user_event_match")
@doc("Deleting: silent about the error of a deletion that matches nothing")
@variants(
    ("other_name", "-:{}x u32 a; u64 b\n", MATCHED, "ENOENT", "ENOENT"),
    ("shorter_name", "-:{:.7} u32 a; u64 b\n", MATCHED, "ENOENT", "ENOENT"),
    ("other_system", "-:syscalls/{} u32 a; u64 b\n", MATCHED, "ENOENT", "ENOENT"),
    ("no_system", "-:/{} u32 a; u64 b\n", MATCHED, "ENOENT", "ENOENT"),
    ("system_alone", "-:user_events/ u32 a; u64 b\n", BY_SYSTEM, "ENOENT", "EINVAL"),
    # The first kernels ignored fields; later ones compared them only if some were given.
    ("no_fields", "-:{}\n", "null_arguments_matched", "ENOENT", ""),
    ("fewer_fields", "-:{} u32 a\n", MATCHED, "ENOENT", ""),
    ("more_fields", "-:{} u32 a; u64 b; u8 c\n", MATCHED, "ENOENT", ""),
    ("other_type", "-:{} u32 a; s64 b\n", MATCHED, "ENOENT", ""),
    ("other_order", "-:{} u64 b; u32 a\n", MATCHED, "ENOENT", ""),
    # Unlike in a registration, no space is inserted after the semicolon.
    ("unspaced_fields", "-:{} u32 a;u64 b\n", MATCHED, "ENOENT", ""),
    ("no_colon", "-{} u32 a; u64 b\n", MATCHED, "EINVAL", "EINVAL"),
    ("minus_alone", "-\n", MATCHED, "EINVAL", "EINVAL"),
    ("minus_and_prefix", "-u:{} u32 a; u64 b\n", MATCHED, "EINVAL", "EINVAL"),
    ("bang_no_colon", "!{} u32 a; u64 b\n", MATCHED, "EINVAL", "EINVAL"),
    ("bang_alone", "!\n", MATCHED, "EINVAL", "EINVAL"),
    ("empty_name", "-: u32 a; u64 b\n", MATCHED, "EINVAL", "EINVAL"),
    ("bang_empty_name", "!u: {} u32 a; u64 b\n", MATCHED, "EINVAL", "EINVAL"),
)
def test_delete_nothing(ue: UserEvents, command: str, switch: str, errno: str, before: str) -> None:
    """A deletion that matches no event fails with ENOENT, a malformed one with EINVAL."""
    shown = "u:" + ue.name() + " u32 a; u64 b\n"
    ue.tracefs.command(shown)
    found = ue.tracefs.command(command.format(ue.name()))
    assert found.errno == ue.dated(switch, since=errno, before=before)
    left = ue.dated(switch, since=shown, before=shown if before else "")
    assert ue.tracefs.dynamic_events() == left


@case(doc="Deleting: delete succeeds only without references, in user and kernel space")
def test_delete_busy(ue: UserEvents) -> None:
    """An event that a descriptor or a tracer holds cannot be deleted: EBUSY."""
    name = ue.name()
    ue.tracefs.command("u:" + name + "\n")
    ue.tracefs.enable(name)
    assert ue.tracefs.command("-:" + name + "\n").errno == "EBUSY"
    ue.tracefs.disable(name)
    ue.open_data().register(name)
    assert ue.tracefs.command("-:" + name + "\n").errno == "EBUSY"
    assert ue.tracefs.dynamic_events() == "u:" + name + "\n"


@case(doc="Deleting: delete succeeds once no references are left")
def test_delete_when_idle(ue: UserEvents) -> None:
    """An event can be deleted as soon as its last reference is dropped."""
    ue.tracefs.command("u:" + ue.name() + "\n")
    ue.tracefs.enable(ue.name())
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.command("-:" + ue.name() + "\n").errno == ""
    assert ue.tracefs.status() == ""


@case(spec="user_event_last_ref", profiles="6.4..", needs="auto_delete")
@doc("Deleting: delete succeeds only without references; events auto-delete when none are left")
def test_delete_registration(ue: UserEvents) -> None:
    """An auto-delete event is busy as long as it exists, whatever holds it."""
    event = ue.event(enabled=True)
    ue.process.exit()
    assert ue.tracefs.command("-:" + ue.name() + "\n").errno == "EBUSY"
    event.disable()
    assert ue.tracefs.dynamic_events(eventually=True) == ""
    assert ue.tracefs.command("-:" + ue.name() + "\n").errno == "ENOENT"


@case(spec="delete_user_event")
@doc("Deleting: DIAG_IOCSDEL takes the name of an event, and deletes those that persist")
def test_deleted_by_ioctl(ue: UserEvents) -> None:
    """DIAG_IOCSDEL deletes an event made by a command, by its name without fields."""
    ue.tracefs.command("u:" + ue.name() + " u32 a; u64 b\n")
    assert ue.open_data().delete(ue.name()).value == 0
    assert ue.tracefs.dynamic_events() == ""


@case(spec="trace_dynevent.c:dyn_event_release: strchr", level="detail", bug="event-name-slash")
@doc("Deleting: silent about slashes")
def test_delete_slash(ue: UserEvents) -> None:
    """Only the first slash separates system and name: further slashes belong to the name."""
    name = ue.name() + "/a/b"
    refused = ue.tracefs.command(f"u:{name} u32 a\n").errno
    assert refused == ue.bug("event-name-slash", fixed="EINVAL", present="")
    assert ue.tracefs.command(f"-:{name} u32 a\n").errno == "ENOENT"
    assert ue.tracefs.command(f"-:user_events/{ue.name()}/b u32 a\n").errno == "ENOENT"
    assert ue.tracefs.dynamic_events() == ("" if refused else f"u:{name} u32 a\n")
    deleted = ue.tracefs.command(f"-:user_events/{name} u32 a\n").errno
    assert deleted == ("ENOENT" if refused else "")
    assert ue.tracefs.dynamic_events() == ""


@case(level="detail", tier="quick", isolation="global")
@spec("trace_dynevent.c:dyn_event_open, dyn_events_release_all")
@doc("Deleting: silent about truncation; `echo >` of a shell opens with it")
def test_truncate(ue: UserEvents) -> None:
    """Opening with O_TRUNC deletes all events before the command runs."""
    ue.tracefs.command("u:one u32 a\nu:two\n")
    assert ue.tracefs.command("u:three\n", os.O_WRONLY | os.O_TRUNC).value == 8
    assert ue.tracefs.dynamic_events(whole=True) == "u:three\n"


@case(doc="Deleting: silent about truncation", level="detail", isolation="global", tier="quick")
@spec("trace_dynevent.c:dyn_events_release_all; trace_events_user.c:user_event_is_busy")
@variants("tracer", "program", quick=2)
def test_truncate_busy(ue: UserEvents, holder: str) -> None:
    """While any event is in use, opening with O_TRUNC fails with EBUSY and deletes none."""
    ue.tracefs.command("u:idle\n")
    if holder == "tracer":
        ue.tracefs.command("u:busy\n")
        ue.tracefs.enable("busy")
    else:
        ue.open_data().register("busy")
    assert ue.tracefs.command("u:new\n", os.O_WRONLY | os.O_TRUNC).errno == "EBUSY"
    assert ue.tracefs.dynamic_events(whole=True) == "u:idle\nu:busy\n"


@case(
    level="detail",
    needs="perf_sink lasting_events",
    facilities="perf",
    isolation="global",
    tier="quick",
)
@spec("user_event_reg: TRACE_REG_PERF_REGISTER")
@doc("Deleting: silent about truncation")
def test_truncate_busy_perf(ue: UserEvents) -> None:
    """An event that perf alone uses makes O_TRUNC fail with EBUSY before any is deleted."""
    ue.tracefs.command("u:idle\nu:busy\n")
    perf = open_perf(ue.process, "busy")
    assert ue.tracefs.command("u:new\n", os.O_WRONLY | os.O_TRUNC).errno == "EBUSY"
    assert ue.tracefs.dynamic_events(whole=True) == "u:idle\nu:busy\n"
    perf.close()
    assert ue.tracefs.command("u:new\n", os.O_WRONLY | os.O_TRUNC).errno == ""
    assert ue.tracefs.dynamic_events(whole=True) == "u:new\n"


@case(
    level="behaviour",
    profiles="6.4..",
    needs="lasting_events auto_delete",
    isolation="global",
    tier="quick",
)
@spec("user_event_is_busy, user_event_last_ref")
@doc("Deleting: delete succeeds only without references; silent about truncation")
@variants("word", "descriptor")
def test_truncate_one_reference(ue: UserEvents, holder: str) -> None:
    """The reference of an auto-delete event makes O_TRUNC fail with EBUSY before any is deleted."""
    ue.tracefs.command("u:idle\n")
    data = ue.open_data()
    event = data.register("busy")
    data.close() if holder == "word" else data.unregister(event.word)
    assert ue.tracefs.command("u:new\n", os.O_WRONLY | os.O_TRUNC).errno == "EBUSY"
    assert ue.tracefs.dynamic_events(whole=True) == "u:idle\nu:busy\n"


@case(spec="trace_dynevent.c:dyn_event_open", level="detail", isolation="global")
@doc("Deleting: silent about truncation")
def test_read_only_truncate(ue: UserEvents) -> None:
    """Opening with O_RDONLY | O_TRUNC deletes nothing."""
    ue.tracefs.command("u:one\n")
    assert File(ue.process, DYNAMIC_EVENTS, os.O_RDONLY | os.O_TRUNC).opened.errno == ""
    assert ue.tracefs.dynamic_events(whole=True) == "u:one\n"


@case(level="behaviour", profiles="6.4..", needs="persist text_flags_refused", tier="quick")
@spec("user_event_capable, user_event_parse")
@doc("Overview: without CAP_PERFMON it is EPERM; silent about which of two errors is reported")
@variants(
    ("new", "u:{}x u32 a\n", "EPERM"),
    ("existing", "u:{}\n", "EPERM"),
    ("delete", "-:{}\n", "EPERM"),
    ("delete_by_bang", "!u:{}\n", "EPERM"),
    # Order of checks: text flags, permission, other fields, parsing.
    ("text_flag", "u:{}:x u32 a\n", "EINVAL"),
    ("other_fields", "u:{} u32 a\n", "EPERM"),
    ("bad_field", "u:{}x long a\n", "EPERM"),
    ("nothing_to_delete", "-:{} u32 a\n", "ENOENT"),
)
def test_not_permitted(ue: UserEvents, command: str, errno: str) -> None:
    """Without CAP_PERFMON no event can be created or deleted through an open file: EPERM."""
    ue.tracefs.command("u:" + ue.name() + "\n")
    file = File(ue.process, DYNAMIC_EVENTS, os.O_WRONLY)
    ue.process.setuid()
    assert file.write(command.format(ue.name()).encode()).errno == errno
    assert ue.tracefs.dynamic_events() == "u:" + ue.name() + "\n"


@case(
    level="behaviour",
    profiles="5.18..6.3",
    needs="",
    without="auto_delete null_arguments_matched persist",
)
@spec("user_event_set_call_visible")
@doc("@v6.1: Overview: silent about permission")
def test_permitted_to_everybody(ue: UserEvents) -> None:
    """Before persistent events existed, an open file could create and delete any event."""
    ue.tracefs.command("u:" + ue.name("old") + " u32 a\n")
    file = File(ue.process, DYNAMIC_EVENTS, os.O_WRONLY)
    ue.process.setuid()
    assert file.write(b"u:" + ue.name("new").encode() + b" u8 b").errno == ""
    shown = ue.tracefs.enabled(ue.name("new"))
    assert shown.errno == ue.dated("events_made_as_root", since="", before="ENOENT")
    assert file.write(b"-:" + ue.name("old").encode() + b" u32 a").errno == ""
    assert ue.tracefs.dynamic_events() == "u:" + ue.name("new") + " u8 b\n"


@case(level="detail", profiles="6.4..", needs="persist")
@doc("Deleting: EPERM without CAP_PERFMON; silent about which of two errors is reported")
def test_busy_before_permission(ue: UserEvents) -> None:
    """For an event in use the error is EBUSY even without CAP_PERFMON."""
    ue.tracefs.command("u:" + ue.name() + "\n")
    ue.tracefs.enable(ue.name())
    file = File(ue.process, DYNAMIC_EVENTS, os.O_WRONLY)
    ue.process.setuid()
    assert file.write(b"-:" + ue.name().encode()).errno == "EBUSY"
    ue.tracefs.disable(ue.name())
    assert file.write(b"-:" + ue.name().encode()).errno == "EPERM"
