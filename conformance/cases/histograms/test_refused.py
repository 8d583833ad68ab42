"""Histograms and variables that are rejected, and what error_log says."""

from conformance.cases.case import UserEvents, doc, surface, variants

SPEC = "trace_events_hist.c"
DOC = "histogram.rst@v6.12"
case = surface("hist", SPEC, DOC, level="detail", isolation="global", facilities="hist")

NO_FIELD = "Couldn't find field"
NO_VARIABLE = "Couldn't find variable"
NO_STRING = "String type can not be an operand in expression"
NO_MODIFIER = "Invalid field modifier"
# Of values and variables.
MODIFIERS = "value_modifiers_refused"


@case(spec="create_hist_data, hist_err", tier="full")
@doc("Histogram variables; error_log says what is wrong, and where")
@variants(
    ("unknown-field", "keys=a:x=nope", "EINVAL", [(NO_FIELD, "nope")]),
    # Logged twice: a field of that name is looked up as well.
    ("unknown-variable", "keys=a:x=$nope", "EINVAL", [(NO_VARIABLE, "nope"), (NO_FIELD, "$nope")]),
    (
        "unknown-event",
        "keys=a:x=user_events.nope.$z",
        "EINVAL",
        [(NO_VARIABLE, "z"), (NO_FIELD, "$z")],
    ),
    ("empty", "keys=a:x=", "EINVAL", [("Empty assignment", "x=")]),
    ("malformed", "keys=a:x=b,z", "EINVAL", [("Malformed assignment", "z")]),
    ("twice", "keys=a:x=b:x=a", "EINVAL", [("Variable already defined", "x")]),
    ("zero", "keys=a:x=b/0", "EDOM", [("Division by zero", "0")]),
    ("number", "keys=a:x=5b", "EINVAL", [("Expecting numeric literal", "5b")]),
    ("logarithm", "keys=a:x=b.log2", "EINVAL", [(NO_MODIFIER, "b.log2")]),
    ("percent", "keys=a:x=b.percent", "EINVAL", [(NO_MODIFIER, "percent")]),
    ("as-a-key", "keys=$x:x=-(b)", "EINVAL", [(NO_VARIABLE, "x"), (NO_FIELD, "$x")]),
    ("too-deep", "keys=a:x=b+1+2+3+4", "EINVAL", [("Too many subexpressions (3 max)", "b")]),
    (
        "minus-inside",
        "keys=a:x=-(b)*2",
        "EINVAL",
        [("Unary minus not supported in sub-expressions", "b)*2")],
    ),
    ("minus-twice", "keys=a:x=-(b-a)", "EINVAL", []),
    ("bare-minus", "keys=a:x=-b", "EINVAL", []),
    ("half", "keys=a:x=b+", "EINVAL", []),
    (
        "too-many",
        "keys=a" + "".join(f":x{number}=b" for number in range(17)),
        "EINVAL",
        [("Too many variables defined", "x16=b")],
    ),
    # Of several errors, the first in the kernel's order of checks is logged.
    ("value-before-variable", "keys=nope:z=nope2:vals=c", "EINVAL", [(NO_FIELD, "c")]),
    ("variable-before-key", "keys=nope:z=c", "EINVAL", [(NO_FIELD, "c")]),
    ("key-before-sorting", "keys=c:sort=d:z=b", "EINVAL", [(NO_FIELD, "c")]),
    (
        "sorting-before-condition",
        "keys=a:sort=x:x=b if (",
        "EINVAL",
        [("Sort field must be a key or a val", "x")],
    ),
)
def test_variable_refused(
    ue: UserEvents, text: str, errno: str, log: list[tuple[str, str]]
) -> None:
    """An invalid variable is rejected with a reason in error_log, and the event does not change."""
    event = ue.event("u32 a; u32 b")
    ue.tracefs.clear_errors()
    refused = event.directory.trigger(f"hist:{text}")
    if text.endswith(".log2") and not ue.profile.has(MODIFIERS):
        assert refused.errno == ""
        return
    assert refused.errno == errno
    assert ue.tracefs.errors() == "".join(
        f"hist:user_events:{ue.name()}: error: {message}\n  Command: hist:{text}\n"
        f"           {' ' * f'hist:{text}'.find(near)}^\n"
        for message, near in log
    )
    assert event.directory.enabled == "0\n"
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)


@case(spec="hist_err", doc="error_log has the error, and a caret below", tier="full")
@variants(
    ("exists", ("keys=a", "keys=a:size=4096"), "EEXIST", "Hist trigger already exists", 0),
    (
        "nothing-to-clear",
        ("keys=a:clear",),
        "ENOENT",
        "Can't clear or continue a nonexistent hist trigger",
        0,
    ),
    # The caret marks the first occurrence of the text, even inside another word.
    ("pointed-elsewhere", ("keys=a:vals=s",), "EINVAL", NO_FIELD, 2),
    ("value-as-a-range", ("keys=a:vals=b.buckets=5",), "EINVAL", NO_MODIFIER, 17),
    ("no-range", ("keys=a.buckets=0",), "EINVAL", NO_MODIFIER, 20),
    (
        "sorted-by-three",
        ("keys=a,b:sort=a,b,hitcount",),
        "EINVAL",
        "Too many sort fields (Max = 2)",
        14,
    ),
    ("sorted-by-nothing", ("keys=a:sort=a,",), "EINVAL", "Empty sort field", 12),
    ("sorted-otherwise", ("keys=a:sort=a.upwards",), "EINVAL", "Invalid sort modifier", 19),
)
def test_refused_and_told(
    ue: UserEvents, texts: tuple[str, ...], errno: str, message: str, column: int
) -> None:
    """error_log has the reason for which a histogram was rejected, and the column."""
    directory = ue.event("u8 a; u8 b").directory
    *before, last = texts
    for text in before:
        directory.trigger(f"hist:{text}")
    ue.tracefs.clear_errors()
    refused = directory.trigger(f"hist:{last}")
    if ":vals=b.buckets" in last and not ue.profile.has(MODIFIERS):
        assert refused.errno == ""
        return
    assert refused.errno == errno
    assert ue.tracefs.errors() == (
        f"hist:user_events:{ue.name()}: error: {message}\n  Command: hist:{last}\n"
        f"           {' ' * column}^\n"
    )


@case(spec="parse_expr, hist_fn_call", doc="Histogram variables", profiles="6.4..", tier="full")
@variants({"left": "s+1", "right": "1-s", "negative": "-(s)"})
def test_variable_of_a_string(ue: UserEvents, text: str) -> None:
    """A string cannot be an operand of a sum, on either side."""
    directory = ue.event("u32 a; __rel_loc char[] s").directory
    ue.tracefs.clear_errors()
    assert directory.trigger(f"hist:keys=a:x={text}").errno == "EINVAL"
    # The caret marks the first s.
    assert ue.tracefs.errors().endswith(
        f"{NO_STRING}\n  Command: hist:keys=a:x={text}\n             ^\n"
    )
    assert directory.trigger("hist:keys=a:x=s").errno == ""
    assert directory.trigger("!hist:keys=a:x=s").errno == ""
