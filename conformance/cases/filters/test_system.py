"""The filter of a system: it is set on each event that accepts it."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents

case = surface(
    "filter",
    spec="trace_events_filter.c",
    doc="Documentation/trace/events.rst@v6.12: Subsystem filters",
    tier="full",
    isolation="global",
)

SYSTEM_FILTER = "/sys/kernel/tracing/events/user_events/filter"
GLOBAL = (
    "### global filter ###\n"
    "# Use this to set filters for multiple events.\n"
    "# Only events with the given fields will be affected.\n"
    "# If no events are modified, an error message will be displayed here\n"
)
NOT_IN_ALL = "^\nparse_error: Couldn't find or set field in one of a subsystem's events\n"


@case(spec="process_system_preds", doc="for events with the field")
def test_system(ue: UserEvents) -> None:
    """The filter of the system is set on each user event, or shown there with its error."""
    data = ue.open_data()
    data.register(ue.name() + " u8 a")
    data.register(ue.name("other") + " u8 b")
    for stem in ("e", "other"):
        ue.tracefs.enable(ue.name(stem))
    first, second = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    second.set_filter("b == 1")
    assert ue.tracefs.write(SYSTEM_FILTER, "a == 1\n").value == 7
    assert first.filter == "a == 1\n"
    assert second.filter == f"a == 1\n{NOT_IN_ALL}\n"
    data.write_event(0, b"\2")
    data.write_event(1, b"\2")
    assert ue.tracefs.records() == [ue.line("b=(2)", dump="02", name="other")]
    assert ue.tracefs.read(SYSTEM_FILTER).text == GLOBAL
    assert ue.tracefs.write(SYSTEM_FILTER, "0\n").errno == ""
    assert (first.filter, second.filter) == ("none\n", "none\n")
    data.write_event(0, b"\2")
    lines = [ue.line("b=(2)", dump="02", name="other"), ue.line("a=(2)", dump="02")]
    assert ue.tracefs.records() == lines


@case(spec="apply_subsystem_event_filter", doc="an error where no event has it")
def test_system_of_nothing(ue: UserEvents) -> None:
    """A filter that no event of the system accepts is stored, and the events lose theirs."""
    directory = ue.event("u8 a").directory
    directory.set_filter("a == 1")
    assert ue.tracefs.write(SYSTEM_FILTER, "nothing\n").value == 8
    assert directory.filter == f"nothing\n{NOT_IN_ALL}\n"
    assert ue.tracefs.read(SYSTEM_FILTER).text == GLOBAL
    multi = SYSTEM_FILTER.replace("user_events", "user_events_multi")
    assert ue.tracefs.write(multi, "a == 1\n").errno == "ENOENT"
