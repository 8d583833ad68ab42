"""ftrace filters that are rejected: errno, what the file shows then, and what is recorded."""

import os

from conformance.cases.case import UserEvents, doc, spec, surface, variants

DOC = "events.rst@v6.12: Event filtering: an error is shown with its place"
case = surface("filter", spec="trace_events.c", doc=DOC, level="detail")


def at(column: int, message: str) -> str:
    """An error message of the parser, and the column it marks."""
    return f"{' ' * column}^\nparse_error: {message}\n"


@case(tier="full", switch="filter-errno")
@spec("trace_events_filter.c:append_filter_err, calc_stack")
@variants(
    # calc_stack() returns -1, -2 or -3, which are taken for error numbers.
    ("closed-too-often", "a == 1)", "EPERM", at(6, "Too few '('")),
    ("no-field", "b == 1", "EINVAL", at(2, "Field not found")),
    ("no-field-later", "a == 1 && (b == 1)", "EINVAL", at(13, "Field not found")),
    ("blanks-before", "  b == 1", "EINVAL", at(4, "Field not found")),
    ("no-operator", "a 1", "EINVAL", at(3, "Invalid operator")),
    ("assignment", "a = 1", "EINVAL", at(3, "Invalid operator")),
    ("member", "a.b == 1", "EINVAL", at(2, "Invalid operator")),
    ("no-value", "a ==", "EINVAL", at(4, "Invalid value (did you forget quotes)?")),
    ("word", "a == x", "EINVAL", at(6, "Invalid value (did you forget quotes)?")),
    ("string", 'a == "x"', "EINVAL", at(6, "Expecting numeric field")),
    ("less-than-string", 'a < "x"', "EINVAL", at(5, "Illegal operation for field type")),
    ("pattern", "a ~ 1", "EINVAL", at(5, "Illegal operation for field type")),
    ("negative", "a == -1", "EINVAL", at(6, "Illegal integer value")),
    ("no-number", "a == 1x", "EINVAL", at(6, "Illegal integer value")),
    ("too-large", "a == 18446744073709551616", "EINVAL", at(6, "Illegal integer value")),
    ("too-long", "a == 123456789012345678901234", "EINVAL", at(29, "Operand too long")),
    ("never-closed", "(a == 1", "ENOENT", at(0, "Too many '('")),
    ("inner-never-closed", "(a == 1 || (a == 2)", "ENOENT", at(0, "Too many '('")),
    ("no-end-of-string", 'a == "1', "ESRCH", at(5, "Missing matching quote")),
    ("two-terms", "a == 1 a == 2", "EPERM", at(7, "Too many terms in predicate expression")),
    ("single-and", "a == 1 & a == 2", "EPERM", at(7, "Too many terms in predicate expression")),
    ("no-name", "== 1", "EPERM", "Error: (0)\n"),
    ("parentheses", "()", "EINVAL", "Error: (0)\n"),
    ("empty", "", "EINVAL", "Error: (0)\n"),
)
def test_refused(ue: UserEvents, text: str, errno: str, shown: str) -> None:
    """An invalid filter is rejected, shown with an error message, and removes the previous one."""
    event = ue.event("u32 a", enabled=True)
    event.directory.set_filter("a == 1")
    refused = event.directory.set_filter(text)
    assert refused.errno == ue.bug("filter-errno", fixed="EINVAL", present=errno)
    assert event.directory.filter == f"{text}\n{shown}\n"
    event.write(b"\x41\0\0\0")
    assert ue.tracefs.records() == [ue.line("a=0x41 (65)", dump="41 00 00 00")]


@case(spec="trace_events_filter.c:parse_pred", profiles="6.4..")
@variants(
    ("number", "s == 1", at(6, "Expecting string field")),
    ("greater", 's > "x"', at(5, "Illegal operation for field type")),
    ("bits", 's & "x"', at(5, "Illegal operation for field type")),
    ("bare-word", "s == x", at(6, "Invalid value (did you forget quotes)?")),
)
def test_refused_for_strings(ue: UserEvents, text: str, shown: str) -> None:
    """A string can be compared with quoted text by ==, != and ~ only."""
    directory = ue.event("char[8] s").directory
    assert directory.set_filter(text).errno == "EINVAL"
    assert directory.filter == f"{text}\n{shown}\n"


@case(profiles="6.4..", needs="functions_in_filters", tier="full")
@spec("trace_events_filter.c:parse_pred: .function")
@doc("Event filtering: FIELD.function == FUNCTION, of fields as long as a long")
@variants(
    ("four-bytes", "a.function == no_such_function", at(15, "Illegal operation for field type")),
    # Eight characters parse as an address.
    ("text", "s.function == no_such_function", at(30, "Function not found")),
    ("bits", "b.function & no_such_function", at(14, "Invalid operator")),
    ("name", "b.function == no_such_function", at(30, "Function not found")),
    ("negated", "b.function != no_such_function && a == 1", at(31, "Function not found")),
    # Up to the next blank, parentheses included.
    ("parenthesis", "(b.function == no_such_function)", at(32, "Function not found")),
    ("quoted", "b.function == 'vfs_read'", at(24, "Function not found")),
    ("address", "b.function == 0x1000", at(20, "Function not found")),
    ("no-number", "b.function == 12z", at(17, "Invalid value (did you forget quotes)?")),
)
def test_refused_functions(ue: UserEvents, text: str, shown: str) -> None:
    """Only 8-byte fields can be compared with a function, which must exist: EINVAL."""
    directory = ue.event("u32 a; u64 b; char[8] s").directory
    assert directory.set_filter(text).errno == "EINVAL"
    assert directory.filter == f"{text}\n{shown}\n"


@case(spec="event_filter_write: cnt >= PAGE_SIZE", tier="full")
@doc("Setting filters: one write, documents no limit")
def test_length(ue: UserEvents) -> None:
    """A filter has up to 4095 bytes; a longer write is EINVAL and keeps the previous filter."""
    directory = ue.event("u32 a").directory
    assert directory.set_filter("a == 1".ljust(4094)).value == 4095
    assert directory.set_filter("a == 2".ljust(4095)).errno == "EINVAL"
    assert directory.filter == "a == 1\n"


@case(spec="event_filter_write", doc="Clearing filters: write 0, not nothing", tier="full")
def test_on_nothing_written(ue: UserEvents) -> None:
    """A write of zero bytes is an empty filter: rejected, and the previous one is removed."""
    directory = ue.event("u32 a").directory
    directory.set_filter("a == 1")
    path = ue.tracefs.event_path(ue.name(), "filter")
    assert ue.tracefs.write(path, "", os.O_WRONLY).errno == "EINVAL"
    assert directory.filter == "\nError: (0)\n\n"


@case(spec="trace.c:tracing_log_err", tier="full", isolation="global")
@doc("ftrace.rst@v6.12: error_log: the command, the error and its place")
def test_logged(ue: UserEvents) -> None:
    """error_log lists rejected filters with the position of the error, until it is cleared."""
    event = ue.event("u32 a")
    ue.tracefs.clear_errors()
    assert ue.tracefs.errors() == ""
    event.directory.set_filter("a == 1 && b == 2")
    event.directory.set_filter("== 1")
    assert ue.tracefs.errors() == (
        "event filter parse error: error: Field not found\n"
        "  Command: a == 1 && b == 2\n"
        "                       ^\n"
        "event filter parse error: error: Error\n"
        "  Command: == 1\n"
        "           ^\n"
    )
    ue.tracefs.clear_errors()
    assert ue.tracefs.errors() == ""
