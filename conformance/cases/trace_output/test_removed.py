"""Records of a deleted event: how `trace` shows them, and when they are discarded.

A record has the id of its event and nothing else.  Deleting through dynamic_events resets the
buffers in which the deleted event was ever enabled; other deletions do not.
"""

import os

from conformance.cases.case import UserEvents, spec, surface, variants
from conformance.client.data_file import DataFile
from conformance.client.tracefs import SNAPSHOT

SPEC = (
    "trace_events.c:probe_remove_event_call: EVENT_FILE_FL_WAS_ENABLED; "
    "trace_dynevent.c:dyn_event_release; trace.c:tracing_reset_all_online_cpus"
)
DOC = "Deleting: silent about what was recorded"
case = surface(
    "trace", SPEC, DOC, level="detail", needs="lasting_events", tier="full", isolation="global"
)

# Before, no deletion resets a buffer: dated.buffers_reset_with_events.
RESET = "lasting_events buffers_reset_with_events"


def recorded(ue: UserEvents, name: str, payload: bytes) -> DataFile:
    """A record of a persistent event that is disabled again; returns the data file."""
    ue.tracefs.command(f"u:{name} u16 a\n")
    data = ue.open_data()
    event = data.register(f"{name} u16 a")
    ue.tracefs.enable(name)
    assert data.write_event(event.index, payload).value == 6
    ue.tracefs.disable(name)
    if ue.profile.has("remote_enable"):
        data.unregister(event.word)
    data.close()
    return ue.open_data()


def known(ue: UserEvents) -> None:
    """Clear the pending buffer reset that earlier programs' deletions left."""
    assert ue.tracefs.command(f"u:{ue.name('never')}\n").errno == ""
    assert ue.tracefs.command(f"-:{ue.name('never')}\n").errno == ""


@case(spec="probe_remove_event_call; trace.c:print_trace_fmt: Unknown type")
def test_removed_by_ioctl(ue: UserEvents) -> None:
    """A record outlives its event, and prints as an unknown type."""
    data = recorded(ue, ue.name(), b"\1\0")
    assert ue.tracefs.bodies() == [ue.line("a=0x1 (1)", dump="01 00")]
    assert data.delete(ue.name(), eventually=True).value == 0
    assert ue.tracefs.bodies() == ["Unknown type N"]
    ue.tracefs.clear_trace()
    assert ue.tracefs.bodies() == []


@case(spec="trace.c:print_trace_fmt: Unknown type", profiles="6.4..", needs="auto_delete")
def test_removed_by_itself(ue: UserEvents) -> None:
    """A record of an auto-deleted event prints as an unknown type as well."""
    event = ue.event("u16 a", enabled=True)
    assert event.write(b"\1\0").value == 6
    ue.process.exit()
    assert ue.tracefs.bodies() == [f"{ue.name()}: a=0x1 (1)"]
    event.disable()
    assert ue.tracefs.bodies(eventually=True) == ["Unknown type N"]


@case(spec="trace_dynevent.c:dyn_event_release; trace.c:tracing_reset_all_online_cpus", needs=RESET)
def test_removed_by_command(ue: UserEvents) -> None:
    """Deletion through dynamic_events resets the buffer, records of other events included."""
    event = ue.event("u16 a", name="other", enabled=True)
    known(ue)
    event.write(b"\2\0")
    recorded(ue, ue.name(), b"\1\0")
    assert len(ue.tracefs.bodies()) == 2
    assert ue.tracefs.command(f"-:{ue.name()} u16 a\n", eventually=True).errno == ""
    assert ue.tracefs.bodies() == []
    assert event.write(b"\3\0").value == 6
    assert ue.tracefs.bodies() == [ue.line("a=0x3 (3)", name="other", dump="03 00")]


@case(spec="trace.c:tracing_reset_all_online_cpus", needs=RESET, facilities="snapshot")
def test_removed_with_snapshot(ue: UserEvents) -> None:
    """Deletion through dynamic_events resets the snapshot buffer as well."""
    event = ue.event("u16 a", name="other", enabled=True)
    known(ue)
    event.write(b"\2\0")
    assert ue.tracefs.write(SNAPSHOT, "1").ok
    assert ue.tracefs.snapshot() == [ue.line("a=0x2 (2)", name="other", dump="02 00")]
    recorded(ue, ue.name(), b"\1\0")
    assert ue.tracefs.command(f"-:{ue.name()} u16 a\n", eventually=True).errno == ""
    assert (ue.tracefs.bodies(), ue.tracefs.snapshot()) == ([], [])
    event.write(b"\3\0")
    assert ue.tracefs.write(SNAPSHOT, "1").ok
    assert ue.tracefs.bodies() == []
    assert ue.tracefs.snapshot() == [ue.line("a=0x3 (3)", name="other", dump="03 00")]


@case(spec="trace_dynevent.c:dyn_event_release; trace.c:tracing_reset_all_online_cpus")
def test_removed_never_enabled(ue: UserEvents) -> None:
    """Deleting an event that was never enabled keeps the records of others."""
    known(ue)
    ue.event("u16 a", name="other", enabled=True).write(b"\2\0")
    ue.tracefs.command(f"u:{ue.name()}\n")
    assert ue.tracefs.command(f"-:{ue.name()}\n").errno == ""
    assert ue.tracefs.bodies() == [ue.line("a=0x2 (2)", name="other", dump="02 00")]


@case(needs=RESET, switch="failed-delete-clears-buffers")
@spec("trace_dynevent.c:dyn_event_release; trace.c:tracing_reset_all_online_cpus")
@variants({"unknown": "-:{}\n", "other_system": "-:sched/{}\n"})
def test_removed_then_command(ue: UserEvents, command: str) -> None:
    """After deletion by ioctl, a deletion command that fails leaves the buffer alone."""
    known(ue)
    data = recorded(ue, ue.name(), b"\1\0")
    assert ue.tracefs.command(command.format(ue.name("x"))).errno == "ENOENT"
    assert ue.tracefs.bodies() == [ue.line("a=0x1 (1)", dump="01 00")]
    assert data.delete(ue.name(), eventually=True).value == 0
    assert ue.tracefs.command("-\n").errno == "EINVAL"
    assert ue.tracefs.bodies() == ["Unknown type N"]
    assert ue.tracefs.command(command.format(ue.name("x"))).errno == "ENOENT"
    left = ue.bug("failed-delete-clears-buffers", fixed=["Unknown type N"], present=[])
    assert ue.tracefs.bodies() == left


@case(needs=RESET)
def test_removed_in_instances(ue: UserEvents) -> None:
    """Only the buffers of instances in which the event was ever enabled are reset."""
    was, never = ue.instance("i"), ue.instance("j")
    was.make()
    never.make()
    known(ue)
    event = ue.event("u16 a", name="other")
    for each in (was, never):
        each.enable(ue.name("other"))
    event.write(b"\2\0")
    ue.tracefs.command(f"u:{ue.name()}\n")
    was.enable(ue.name())
    was.disable(ue.name())
    assert ue.tracefs.command(f"-:{ue.name()}\n").errno == ""
    assert was.bodies() == []
    assert never.bodies() == [ue.line("a=0x2 (2)", name="other", dump="02 00")]


@case(spec="trace_output.c:register_trace_event")
@variants(
    ("same", "e", "u16 a", ("a=0x201 (513)",)),
    ("other_fields", "e", "u8 x; u8 y", ("x=(1)", "y=(2)")),
    ("other_name", "f", "u8 x; u8 y", ("x=(1)", "y=(2)")),
)
def test_removed_and_made_anew(
    ue: UserEvents, stem: str, fields: str, values: tuple[str, ...]
) -> None:
    """The records of a deleted event print as those of the next event that gets its id."""
    data = recorded(ue, ue.name("e"), b"\1\2")
    assert data.delete(ue.name("e"), eventually=True).value == 0
    ue.tracefs.command(f"u:{ue.name(stem)} {fields}\n")
    shown = ue.line(*values, name=stem, dump="01 02")
    assert ue.tracefs.bodies() == [ue.dated("ids_reused", since=shown, before="Unknown type N")]


@case(needs=RESET)
@spec("trace_dynevent.c:dyn_events_release_all; trace.c:tracing_reset_all_online_cpus")
def test_removed_by_truncation(ue: UserEvents) -> None:
    """Opening dynamic_events with O_TRUNC resets the buffers of the deleted events."""
    known(ue)
    recorded(ue, ue.name(), b"\1\0")
    assert ue.tracefs.bodies() == [ue.line("a=0x1 (1)", dump="01 00")]
    assert ue.tracefs.command("u:new\n", os.O_WRONLY | os.O_TRUNC, eventually=True).value == 6
    assert ue.tracefs.bodies() == []


@case(needs=RESET)
@spec("trace_dynevent.c:dyn_events_release_all; trace.c:tracing_reset_all_online_cpus")
def test_removed_then_truncation(ue: UserEvents) -> None:
    """After deletion by ioctl, opening with O_TRUNC resets the buffer even if it fails: EBUSY."""
    known(ue)
    data = recorded(ue, ue.name(), b"\1\0")
    assert data.delete(ue.name(), eventually=True).value == 0
    assert ue.tracefs.bodies() == ["Unknown type N"]
    data.register("busy")
    assert ue.tracefs.command("u:new\n", os.O_WRONLY | os.O_TRUNC).errno == "EBUSY"
    assert ue.tracefs.bodies() == []


@case(needs=RESET)
def test_removed_after_trigger(ue: UserEvents) -> None:
    """Deleting an event that was first used by a trigger resets the buffer."""
    known(ue)
    assert ue.event("u16 a", name="other", enabled=True).write(b"\2\0").value == 6
    ue.tracefs.command(f"u:{ue.name()} u16 a\n")
    directory = ue.tracefs.directory(ue.name())
    assert directory.trigger("traceon").errno == ""
    ue.tracefs.enable(ue.name())
    ue.tracefs.disable(ue.name())
    assert directory.trigger("!traceon").errno == ""
    assert ue.tracefs.bodies() == [ue.line("a=0x2 (2)", name="other", dump="02 00")]
    assert ue.tracefs.command(f"-:{ue.name()} u16 a\n").errno == ""
    assert ue.tracefs.bodies() == []
