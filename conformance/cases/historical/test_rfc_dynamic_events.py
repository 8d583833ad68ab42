"""dynamic_events in the first version: the prefix `ue:`, reversed fields, and the tracers."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.rfc_v1 import PATCH, bound_data
from conformance.client.rfc_v1 import register

DOC = f"{PATCH}: `ue:` and what the ioctl takes, appended to dynamic_events"
case = surface("rfc", spec="user_event_create", doc=DOC, level="behaviour", profiles="rfc-v1")


@case(spec="user_event_create; trace_events_user.c:user_event_show", isolation="global")
def test_created(ue: UserEvents) -> None:
    """The example of the patch: `ue:test` creates an event, which shows as used by ftrace."""
    assert ue.tracefs.command("ue:test\n").value == 8
    assert ue.tracefs.definitions(whole=True) == "ue:test\n"
    ue.tracefs.enable("test")
    assert ue.tracefs.dynamic_events(whole=True) == "ue:test (Used by ftrace)\n"
    ue.tracefs.disable("test")
    assert ue.tracefs.dynamic_events(whole=True) == "ue:test\n"


@case(spec="user_event_show", doc="shows type and name of the fields", isolation="global")
def test_created_with_field(ue: UserEvents) -> None:
    """The example of the patch: an array of 20 bytes is shown without size and offset."""
    assert ue.tracefs.command("ue:detailed;char[]\tmsg\t20\t0\n").value == 28
    assert ue.tracefs.definitions(whole=True) == "ue:detailed;char[] msg\n"


@case(spec="user_event_show: the list has the last first", level="detail")
@doc("shows type and name of the fields")
@variants({"dynamic_events": True, "ioctl": False})
def test_fields_backwards(ue: UserEvents, by_command: bool) -> None:
    """Of several fields the last is shown first, however the event was created."""
    definition = f"{ue.name()};char[]\tmsg\t20\t0;unsigned int\tid\t4\t20;u8\tc\t1\t24"
    if by_command:
        ue.tracefs.command(f"ue:{definition}\n")
    else:
        register(ue.open_data(), definition)
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u8 c;unsigned int id;char[] msg\n"


@case(spec="find_user_event")
def test_both_ways(ue: UserEvents) -> None:
    """An event is the same by ioctl and by command, and the second creation changes nothing."""
    ue.tracefs.command(f"ue:{ue.name()};u8\ta\t1\t0\n")
    data = bound_data(ue, ue.name() + ";u16\tb\t2\t0")
    assert ue.tracefs.command(f"ue:{ue.name()};u32\tc\t4\t0\n").errno == ""
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u8 a\n"
    assert ue.tracefs.enable(ue.name()).errno == ""
    assert data.write(b"\x07").value == 1
    assert ue.tracefs.records() == ["07"]


@case(spec="trace_dynevent.c:dyn_event_seq_show", level="detail")
def test_shown_in_order(ue: UserEvents) -> None:
    """Events are listed in the order of creation."""
    for stem in ("c", "a", "b"):
        bound_data(ue, ue.name(stem))
    assert ue.tracefs.definitions() == f"ue:{ue.name('c')}\nue:{ue.name('a')}\nue:{ue.name('b')}\n"


@case(spec="trace.c:trace_parse_run_command", level="detail")
def test_several_lines(ue: UserEvents) -> None:
    """Lines run up to the first invalid one: EINVAL; events created before it stay."""
    lines = f"ue:{ue.name('a')}\n\n# nothing\nue:{ue.name('b')};u8\nno\nue:{ue.name('c')}\n"
    assert ue.tracefs.command(lines).errno == "EINVAL"
    assert ue.tracefs.definitions() == f"ue:{ue.name('a')}\nue:{ue.name('b')}\n"


@case(isolation="global")
@variants(
    ("space", "ue: e", "ue: e"),
    ("nothing", "ue:", "ue:"),
    ("comment", "ue:e # what for", "ue:e "),
    ("colon", "ue:ue:e", "ue:ue:e"),
    ("system", "ue:user_events/e", "ue:user_events/e"),
    ("release-fields", "ue:e u32 a", "ue:e u32 a"),
)
def test_names_to_semicolon(ue: UserEvents, command: str, line: str) -> None:
    """The text from the prefix to a semicolon is the name, even if it is blank or empty."""
    assert ue.tracefs.command(f"{command}\n").errno == ""
    assert ue.tracefs.definitions(whole=True) == f"{line}\n"


@case(doc="an event that is hooked shows who hooked it", level="detail", isolation="global")
def test_used_by_not_parsed(ue: UserEvents) -> None:
    """A listed line that names tracers is no definition: written back it creates another event."""
    ue.tracefs.command("ue:test\n")
    ue.tracefs.enable("test")
    line = ue.tracefs.dynamic_events(whole=True)
    ue.tracefs.disable("test")
    assert line == "ue:test (Used by ftrace)\n"
    assert ue.tracefs.command("ue:test (Used by ftrace)\n").errno == ""
    assert ue.tracefs.enabled("test (Used by ftrace)").text == "0\n"
    assert ue.open_data().delete("test (Used by ftrace)").value == 0


@case(spec="user_event_create; trace_dynevent.c:create_dyn_event", level="detail")
@variants(
    ("of-releases", "u:"),
    ("upper-case", "UE:"),
    ("space", " ue:"),
    ("none", ""),
    ("no-colon", "ue "),
)
def test_other_prefix(ue: UserEvents, prefix: str) -> None:
    """A line with another prefix, such as that of the releases, creates no event: EINVAL."""
    assert ue.tracefs.command(f"{prefix}{ue.name()}\n").errno == "EINVAL"
    assert ue.tracefs.definitions() == ""


@case(spec="user_event_parse_fields", level="detail")
def test_unparsed_field(ue: UserEvents) -> None:
    """A field that does not parse is not reported here either."""
    assert ue.tracefs.command(f"ue:{ue.name()};u8\ta\t1\t0;u32 b;u8\tc\t1\t1\n").errno == ""
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u8 a\n"


@case(spec="user_event_match; trace_dynevent.c:dyn_event_release", doc="dynamic_events deletes too")
@variants(
    ("name", "-:{}"),
    ("system", "-:user_events/{}"),
    ("bang", "!ue:{}"),
    ("other-fields", "-:{} u64 x"),
    ("bang-system", "!x:user_events/{} y"),
)
def test_command_deletes(ue: UserEvents, command: str) -> None:
    """Both generic forms delete by name, with or without the system, whatever follows."""
    ue.tracefs.command(f"ue:{ue.name()};u8\ta\t1\t0\n")
    assert ue.tracefs.command(command.format(ue.name()) + "\n").errno == ""
    assert ue.tracefs.definitions() == ""


@case(spec="user_event_match; trace_dynevent.c:dyn_event_release", level="detail")
@doc("dynamic_events deletes too")
@variants(
    ("other-system", "-:kprobes/{}", "ENOENT"),
    ("no-colon", "-{}", "EINVAL"),
    ("name-and-field", "-:{};u8", "ENOENT"),
    ("unknown", "-:{}x", "ENOENT"),
    ("no-name", "-:", "EINVAL"),
    ("bang-alone", "!{}", "EINVAL"),
)
def test_command_refused(ue: UserEvents, command: str, errno: str) -> None:
    """A deletion that names no event is ENOENT, a malformed one EINVAL."""
    ue.tracefs.command(f"ue:{ue.name()};u8\ta\t1\t0\n")
    assert ue.tracefs.command(command.format(ue.name()) + "\n").errno == errno
    assert ue.tracefs.definitions() == f"ue:{ue.name()};u8 a\n"


@case(spec="user_event_free", doc="dynamic_events deletes too")
def test_command_listened_to(ue: UserEvents) -> None:
    """An event enabled in ftrace is not deleted: EBUSY."""
    ue.tracefs.command(f"ue:{ue.name()}\n")
    ue.tracefs.enable(ue.name())
    assert ue.tracefs.command(f"-:{ue.name()}\n").errno == "EBUSY"
    assert ue.tracefs.dynamic_events() == f"ue:{ue.name()} (Used by ftrace)\n"
    ue.tracefs.disable(ue.name())
    assert ue.tracefs.command(f"-:{ue.name()}\n").errno == ""


@case(spec="user_event_free: refs are not looked at", level="detail", isolation="fatal")
@doc("trace_events_user.c@rfc-v1: an event is deleted if it is no longer being used")
def test_command_ignores_descriptors(ue: UserEvents) -> None:
    """dynamic_events deletes an event even if a descriptor is bound to it."""
    assert bound_data(ue, ue.name()).delete(ue.name()).errno == "EBUSY"
    assert ue.tracefs.command(f"-:{ue.name()}\n").errno == ""
    assert ue.tracefs.definitions() == ""
    assert ue.tracefs.enabled(ue.name()).errno == "ENOENT"


@case(doc="dynamic_events deletes too; silent of truncation", level="detail", isolation="global")
@spec("user_event_is_busy; trace_dynevent.c:dyn_events_release_all")
@variants({"descriptor": False, "ftrace": True})
def test_truncation(ue: UserEvents, listening: bool) -> None:
    """O_TRUNC deletes all events, or none while one has a descriptor or a tracer: EBUSY."""
    ue.tracefs.command("ue:idle\nue:busy\n")
    data = ue.open_data()
    ue.tracefs.enable("busy") if listening else register(data, "busy")
    assert ue.tracefs.command("ue:new\n", os.O_WRONLY | os.O_TRUNC).errno == "EBUSY"
    assert ue.tracefs.definitions(whole=True) == "ue:idle\nue:busy\n"
    ue.tracefs.disable("busy")
    data.close()
    assert ue.tracefs.command("ue:new\n", os.O_WRONLY | os.O_TRUNC).errno == ""
    assert ue.tracefs.definitions(whole=True) == "ue:new\n"
