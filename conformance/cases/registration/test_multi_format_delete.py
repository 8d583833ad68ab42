"""Deleting multi-format events: all of a name, up to one in use, or one by its fields."""

import os
from collections.abc import Iterable

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.registration import MULTI_FORMAT, PERSIST
from conformance.cases.support.status_text import tracepoints
from conformance.client.caller import Word

SPEC = "delete_user_event"
DOC = "Deleting: dynamic_events deletes one specific format"
NEEDS = "multi_format persist arguments_matched"
ALL_FORMATS = "Deleting: with several formats of a name, deletion of all of them is attempted"
case = surface(
    "multi_format", SPEC, DOC, level="behaviour", profiles="6.4..", needs=NEEDS, tier="full"
)


def _left_behind(ue: UserEvents, formats: Iterable[str], flags: int) -> None:
    """Create persistent events that are no longer referenced.

    Their enable words are invalid: no word means no deferred release.
    """
    data = ue.open_data()
    for fields in formats:
        data.register(ue.name() + fields, flags=flags, word=Word(ue.process, 0))
    data.close()


@case(doc=ALL_FORMATS, level="contract")
@variants(("formats_alone", False), ("single_too", True))
def test_delete_all(ue: UserEvents, single: bool) -> None:
    """DIAG_IOCSDEL deletes all formats of a name, and its single-format event as well."""
    _left_behind(ue, (" u32 a", " u64 a"), PERSIST | MULTI_FORMAT)
    if single:
        _left_behind(ue, (" u8 a",), PERSIST)
    data = ue.open_data()
    assert data.delete(ue.name()).value == 0
    assert data.delete(ue.name()).errno == "ENOENT"
    assert ue.tracefs.dynamic_events() == ""


@case(doc=ALL_FORMATS, level="contract")
def test_delete_many(ue: UserEvents) -> None:
    """One call deletes all of 65 formats of a name."""
    _left_behind(ue, (f" u8 f{number}" for number in range(65)), PERSIST | MULTI_FORMAT)
    data = ue.open_data()
    assert len(tracepoints(ue)) == 65
    assert data.delete(ue.name()).value == 0
    assert ue.tracefs.dynamic_events() == ""


@case(spec="user_event_is_busy", isolation="global")
@doc("Deleting: not while references are left; silent about truncation")
def test_truncate_busy(ue: UserEvents) -> None:
    """While a format is in use, opening dynamic_events with O_TRUNC is EBUSY and deletes none."""
    _left_behind(ue, (" u32 a", " u64 a"), PERSIST | MULTI_FORMAT)
    ue.event("u64 a", flags=MULTI_FORMAT)
    assert ue.tracefs.command("u:new\n", os.O_WRONLY | os.O_TRUNC).errno == "EBUSY"
    assert ue.tracefs.dynamic_events(whole=True) == "u:{0} u32 a\nu:{0} u64 a\n".format(ue.name())


@case
@doc("Deleting: by the name of the event; silent about that of its tracepoint")
def test_delete_by_full_name(ue: UserEvents) -> None:
    """DIAG_IOCSDEL takes the registered name: that of a tracepoint is ENOENT."""
    _left_behind(ue, (" u32 a",), PERSIST | MULTI_FORMAT)
    (tracepoint,) = tracepoints(ue)
    assert ue.open_data().delete(tracepoint).errno == "ENOENT"
    assert ue.tracefs.command("-:" + tracepoint + " u32 a\n").errno == "ENOENT"
    assert ue.tracefs.dynamic_events() == "u:" + ue.name() + " u32 a\n"


@case(level="detail", tier="quick")
@doc("Deleting: all formats are attempted; silent about what a failure leaves")
@variants(
    ("oldest", "u32 a", "u:NAME u32 a\n"),
    ("middle", "u64 a", "u:NAME u32 a\nu:NAME u64 a\n"),
    ("newest", "u8 a", "u:NAME u32 a\nu:NAME u64 a\nu:NAME u8 a\n"),
)
def test_delete_stops_at_busy(ue: UserEvents, held: str, left: str) -> None:
    """Formats are deleted newest first, up to the first in use: EBUSY, the rest stays."""
    _left_behind(ue, (" u32 a", " u64 a", " u8 a"), PERSIST | MULTI_FORMAT)
    assert ue.event(held, flags=MULTI_FORMAT).delete().errno == "EBUSY"
    assert ue.tracefs.dynamic_events().replace(ue.name(), "NAME") == left


@case(level="contract", tier="quick")
@doc("Deleting: deleting an event that persists requires CAP_PERFMON, otherwise -EPERM")
def test_delete_not_permitted(ue: UserEvents) -> None:
    """Without CAP_PERFMON deleting persistent formats fails with EPERM."""
    _left_behind(ue, (" u32 a", " u64 a"), PERSIST | MULTI_FORMAT)
    data = ue.open_data()
    ue.process.setuid()
    assert data.delete(ue.name()).errno == "EPERM"
    assert len(tracepoints(ue)) == 2


@case(needs="multi_format persist arguments_matched null_arguments_matched", tier="quick")
@spec("user_event_match")
@doc("Deleting: dynamic_events deletes one specific format; silent about system names and `!`")
@variants(
    ("by_fields_and_other_system", "-:user_events/{} u32 a\n", "u:NAME u64 a\nu:NAME\n"),
    ("by_fields_and_system", "-:user_events_multi/{} u32 a\n", "u:NAME u64 a\nu:NAME\n"),
    ("by_fields", "-:{} u64 a\n", "u:NAME u32 a\nu:NAME\n"),
    ("by_no_fields", "-:{}\n", "u:NAME u32 a\nu:NAME u64 a\n"),
    ("by_bang", "!u:{} u64 a\n", "u:NAME u32 a\nu:NAME\n"),
)
def test_command_deletes_one(ue: UserEvents, command: str, left: str) -> None:
    """A deletion in dynamic_events deletes the one format with exactly its fields."""
    _left_behind(ue, (" u32 a", " u64 a", ""), PERSIST | MULTI_FORMAT)
    assert ue.tracefs.command(command.format(ue.name())).errno == ""
    assert ue.tracefs.dynamic_events().replace(ue.name(), "NAME") == left


@case(spec="user_event_match")
@doc("Deleting: dynamic_events deletes one specific format;")
@doc("silent about single-format events beside it")
@variants(
    ("no_system", "{}"),
    ("single_system", "user_events/{}"),
    ("multi_system", "user_events_multi/{}"),
)
def test_command_deletes_both_kinds(ue: UserEvents, target: str) -> None:
    """A deletion in dynamic_events matches both kinds of events, by either system or none."""
    _left_behind(ue, (" u32 a", " u64 a"), PERSIST | MULTI_FORMAT)
    _left_behind(ue, (" u32 a",), PERSIST)
    assert ue.tracefs.command("-:" + target.format(ue.name()) + " u32 a\n").errno == ""
    assert ue.tracefs.dynamic_events() == "u:" + ue.name() + " u64 a\n"


@case(spec="trace_dynevent.c:dyn_event_release", level="detail")
@doc("Deleting: dynamic_events deletes one specific format;")
@doc("silent about single-format events beside it")
@variants(("older", MULTI_FORMAT, 2), ("newer", 0, 1))
def test_command_stops_at_busy(ue: UserEvents, held: int, left: int) -> None:
    """A deletion of both kinds deletes the older first, up to one in use: EBUSY."""
    _left_behind(ue, (" u32 a",), PERSIST | MULTI_FORMAT)
    _left_behind(ue, (" u32 a",), PERSIST)
    ue.event("u32 a", flags=held)
    assert ue.tracefs.command("-:" + ue.name() + " u32 a\n").errno == "EBUSY"
    assert ue.tracefs.dynamic_events() == ("u:" + ue.name() + " u32 a\n") * left


@case(spec="user_event_create", tier="quick")
@doc("Overview: dynamic_events takes the format of the ioctl; silent about flags")
def test_command_makes_single(ue: UserEvents) -> None:
    """A command creates a single-format event, even if formats of its name exist."""
    ue.event("u32 a", flags=MULTI_FORMAT)
    assert ue.tracefs.command("u:" + ue.name() + " u32 a\n").errno == ""
    assert tracepoints(ue)[0] == ue.name()
    assert ue.tracefs.command("u:" + ue.name() + " u64 a\n").errno == "EADDRINUSE"
