"""Dated changes of filters and of probes on user events."""

from conformance.cases.case import UserEvents, doc, spec, surface
from conformance.cases.support.eprobes import add_eprobe, remove_eprobe
from conformance.client.tracefs import KPROBES

case = surface("dated", doc="events.rst@v6.12: Event filtering: silent", level="detail")


@case(spec="trace_events_filter.c:parse_pred: .function", switch="functions_in_filters")
@doc("Event filtering: FIELD.function == FUNCTION, of fields as long as a long")
def test_functions_in_filters(ue: UserEvents) -> None:
    """A filter may compare with a function, which is then searched; .function was no operator."""
    text = "a.function == no_such_function"
    directory = ue.event("u64 a").directory
    assert directory.set_filter(text).errno == "EINVAL"
    assert directory.filter == f"{text}\n" + ue.dated(
        "functions_in_filters",
        since="                              ^\nparse_error: Function not found\n\n",
        before="  ^\nparse_error: Invalid operator\n\n",
    )


@case(bug="filter-odd-size filter-odd-size-oops", tier="full", isolation="fatal")
@spec("trace_events_filter.c:select_comparison_fn; filter_pred_fn_call")
@doc("Event filtering: numeric fields; of fields of other sizes it says nothing")
def test_odd_sizes_compared(ue: UserEvents) -> None:
    """A filter on a field of five bytes is refused, or accepted and matches no record."""
    event = ue.event("struct s a 5", enabled=True)
    filtered = event.directory.set_filter("a == 0")
    assert filtered.errno == ue.bug("filter-odd-size", fixed="EINVAL", present="")
    assert event.write(bytes(5)).value == 9
    assert len(ue.tracefs.records()) == ue.bug("filter-odd-size", fixed=1, present=0)


@case(spec="trace_events_filter.c:parse_pred: CPUS{", switch="processor_sets")
@doc("Event filtering: CPUS{} holds a list of processors")
def test_processor_sets(ue: UserEvents) -> None:
    """A number can be compared with a set of CPUs; before, that was an invalid value."""
    filtered = ue.event("u32 a").directory.set_filter("a & CPUS{0}")
    assert filtered.errno == ue.dated("processor_sets", since="", before="EINVAL")


# Older kernels know no strings of user events.
@case(needs="remote_enable", switch="whole_pattern_compared")
@doc("Event filtering: == compares strings")
@spec("trace_events_filter.c:regex_match_full")
def test_whole_pattern_compared(ue: UserEvents) -> None:
    """A field of four characters does not equal five; before, only four were compared."""
    event = ue.event("char[4] a", enabled=True)
    assert event.directory.set_filter('a == "abcde"').errno == ""
    assert event.write(b"abcd").value == 8
    assert len(ue.tracefs.records()) == ue.dated("whole_pattern_compared", since=0, before=1)


@case(isolation="global", switch="probes_deleted_by_system")
@spec("trace_dynevent.c:dyn_event_release")
@doc("@v6.12: Deleting: silent about the error of a deletion that matches nothing")
def test_probes_deleted_by_system(ue: UserEvents) -> None:
    """A deletion without a name is ENOENT for a system without probes; before, EINVAL."""
    deleted = ue.tracefs.command("-:no_such_system/\n")
    assert deleted.errno == ue.dated("probes_deleted_by_system", since="ENOENT", before="EINVAL")


@case(isolation="global", switch="eprobe_system_matched", facilities="eprobes")
@spec("trace_eprobe.c:eprobe_dyn_event_match")
@doc("eprobetrace.rst@v6.18: -:[GRP/]ENAME; silent about what may follow")
def test_eprobe_system_matched(ue: UserEvents) -> None:
    """Part of a system's name is not that system, and the eprobe stays; before, it was deleted."""
    ue.event("u8 a")
    assert add_eprobe(ue, "a=$a").errno == ""
    command = f"-:{KPROBES}/{ue.name('p')} user_event/{ue.name()}\n"
    errno = ue.tracefs.command(command).errno
    assert errno == ue.dated("eprobe_system_matched", since="ENOENT", before="")
    if errno:
        remove_eprobe(ue)


@case(isolation="global", switch="eprobe_conditions", facilities="eprobes")
@doc("eprobetrace.rst@v6.18: silent about conditions")
@spec("trace_eprobe.c:trace_eprobe_parse_filter")
def test_eprobe_conditions(ue: UserEvents) -> None:
    """An eprobe takes a condition; before, `if` was an argument without a value: EINVAL."""
    ue.event("u8 a")
    added = add_eprobe(ue, "a=$a if a == 1").errno
    assert added == ue.dated("eprobe_conditions", since="", before="EINVAL")


@case(isolation="global", switch="eprobe_fields_parsed", facilities="eprobes")
@spec("trace_probe.c:parse_trace_event_arg")
@doc("eprobetrace.rst@v6.18: silent about errors")
def test_eprobe_fields_parsed(ue: UserEvents) -> None:
    """An eprobe on an unknown field is EINVAL; before, ENOENT."""
    ue.event("u8 a")
    added = add_eprobe(ue, "x=$nope").errno
    assert added == ue.dated("eprobe_fields_parsed", since="EINVAL", before="ENOENT")
