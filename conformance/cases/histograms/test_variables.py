"""Histogram variables: values that one user event saves for a key and another reads."""

import os
import struct

from conformance.cases.case import UserEvents, doc, spec, surface, variants
from conformance.cases.support.instances import create_instance

DOC = "histogram.rst@v6.12: Histogram variables"
case = surface("hist", doc=DOC, level="detail", tier="full", facilities="hist")


@case(spec="trace_events_hist.c:resolve_var_refs; trace_events_hist.c:create_hist_data")
def test_variable(ue: UserEvents) -> None:
    """One event reads what another saved for the key; until a value is saved it counts nothing."""
    data = ue.register(e="u32 a; u32 b", other="u32 c")
    owner, reader = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    assert owner.trigger("hist:keys=a:x=b").errno == ""
    assert owner.triggers == "hist:keys=a:vals=hitcount:x=b:sort=hitcount:size=2048 [active]\n"
    assert reader.trigger("hist:keys=c:vals=$x").errno == ""
    assert reader.triggers == "hist:keys=c:vals=hitcount,$x:sort=hitcount:size=2048 [active]\n"
    data.write_event(1, struct.pack("<I", 7))
    assert "    Hits: 0\n    Entries: 0\n" in reader.hist
    for key, number in ((7, 5), (8, 100), (7, 3)):
        data.write_event(0, struct.pack("<II", key, number))
    data.write_event(1, struct.pack("<I", 7))
    data.write_event(1, struct.pack("<I", 7))
    assert "\n{ c:          7 } hitcount:          2  x:          6\n" in reader.hist
    assert "\n{ a:          8 } hitcount:          1\n" in owner.hist
    reader.trigger("!hist:keys=c:vals=$x")
    assert owner.trigger("!hist:keys=a:x=b").errno == ""


@case(switch="hist-division")
@spec("trace_events_hist.c:parse_expr, hist_fn_call, div_by_mult_and_shift")
@variants(
    # Division by a constant rounds up if there is a remainder, unless it is a power of two.
    ("by-three", "b/3", "b/3", 4),
    ("folded-quotient", "10/3", "4", 4),
    ("sum", "b+c", "b+c", 13),
    ("constant", "5", "5", 5),
    ("hexadecimal", "0x10", "16", 16),
    ("product-first", "b+c*2", "b+c*2", 16),
    ("from-the-left", "b-c-1", "b-c-1", 6),
    ("below-zero", "c-b", "c-b", 18446744073709551609),
    ("negative", "-(c)", "-(c)", 18446744073709551613),
    ("negative-sum", "-(b+c)", "-(b+c)", 18446744073709551603),
    ("signed", "d", "d", 18446744073709551615),
    ("signed-sum", "d+c", "d+c", 2),
    ("quotient", "b/c", "b/c", 3),
    # Division by zero: no number is as large.
    ("by-zero", "b/z", "b/z", 18446744073709551615),
    ("by-three-exactly", "b*3/3", "b*3/3", 10),
    ("by-four", "b/4", "b/4", 2),
    ("by-much", "b/1048577", "b/1048577", 0),
    ("folded", "7-5-2", "0", 0),
    ("folded-between", "b+2*3", "b+6", 16),
    ("alias", "b:y=$x", "b,y=b", 10),
)
def test_variable_worth(ue: UserEvents, text: str, shown: str, worth: int) -> None:
    """Variables are sums of fields and numbers, evaluated from the left in unsigned 64 bits."""
    if text in ("b/3", "10/3"):
        worth = ue.bug("hist-division", fixed=3, present=worth)
    if text == "10/3":
        shown = ue.bug("hist-division", fixed="3", present=shown)
    data = ue.register(e="u8 a; u8 b; u16 c; s8 d; u8 z", other="u8 a")
    owner, reader = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    assert owner.trigger(f"hist:keys=a:x={text}").errno == ""
    definition = f"hist:keys=a:vals=hitcount:x={shown}:sort=hitcount:size=2048 [active]\n"
    assert owner.triggers == definition
    assert reader.trigger("hist:keys=a:vals=$x").errno == ""
    data.write_event(0, b"\1\x0a\3\0\xff\0")
    data.write_event(1, b"\1")
    assert f"\n{{ a:          1 }} hitcount:          1  x: {worth:>10}\n" in reader.hist


@case(switch="hist-var-expression-cut")
@spec("trace_events_hist.c:field_name_from_var; parse_expr cuts the text of the variable")
@variants(
    # Only the first field of a sum is left of its text.
    ("of-a-sum", "keys=a:x=b*2+1:y=$x", "keys=a:vals=hitcount:x=b*2+1,y=b:sort=hitcount"),
    ("as-a-key", "keys=$x:x=b+1", "keys=b:vals=hitcount:x=b+1:sort=hitcount"),
    ("of-a-field", "keys=$x:x=b:vals=$x", "keys=b:vals=hitcount,b:x=b:sort=hitcount"),
    ("later", "keys=a:y=$x:x=b", "keys=a:vals=hitcount:y=b,x=b:sort=hitcount"),
)
def test_variable_of_the_same(ue: UserEvents, text: str, shown: str) -> None:
    """A variable of the same histogram reads as its field; that of a sum cannot be read."""
    directory = ue.event("u8 a; u8 b").directory
    created = directory.trigger(f"hist:{text}")
    if "x=b*2+1" in text or "x=b+1" in text:
        assert created.errno == ue.bug("hist-var-expression-cut", fixed="EINVAL", present="")
    if not created.errno:
        assert directory.triggers == f"hist:{shown}:size=2048 [active]\n"
        assert directory.trigger(f"!hist:{text}").errno == ""
    assert directory.enabled == "0\n"


@case(spec="trace_events_hist.c:resolve_var_refs: tracing_map_read_var_once")
@doc("Histogram variables: a reference in an expression uses the value up")
def test_variable_read_once(ue: UserEvents) -> None:
    """A variable read in a sum is consumed: the next event counts only after a new value."""
    data = ue.register(e="u8 a; u8 b", other="u8 a; u8 b")
    owner, reader = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    owner.trigger("hist:keys=a:x=b")
    assert reader.trigger("hist:keys=a:y=b-$x").errno == ""
    assert reader.triggers == "hist:keys=a:vals=hitcount:y=b-$x:sort=hitcount:size=2048 [active]\n"
    data.write_event(0, b"\1\5")
    for _ in range(3):
        data.write_event(1, b"\1\7")
    assert "    Hits: 1\n" in reader.hist
    data.write_event(0, b"\1\5")
    data.write_event(1, b"\1\7")
    assert "    Hits: 2\n" in reader.hist


@case(spec="trace_events_hist.c:hist_trigger_entry_print", doc="values are shown with the hitcount")
def test_sum_is_not_shown(ue: UserEvents) -> None:
    """A value that is a sum of fields is accepted, and appears in no entry."""
    event = ue.event("u8 a; u8 b")
    assert event.directory.trigger("hist:keys=a:vals=b+1,b").errno == ""
    definition = "hist:keys=a:vals=hitcount,b+1,b:sort=hitcount:size=2048 [active]\n"
    assert event.directory.triggers == definition
    event.write(b"\1\5")
    assert "\n{ a:          1 } hitcount:          1  b:          5\n" in event.directory.hist


def accepts_percent(ue: UserEvents) -> bool:
    """Whether values have .percent and .graph, which 6.3 refused with other modifiers."""
    refused = ue.profile.has("value_modifiers_refused")
    kept = not refused or ue.profile.has("percent_and_graph_kept")
    return kept and ue.profile.has("percent_and_graph")


@case(spec="trace_events_hist.c:hist_trigger_print_val", doc=".hex, .percent, .graph")
@variants(
    ("hex", "b:         1e", "b:          a"),
    ("percent", "b (%):  75.00", "b (%):  25.00"),
    ("graph", f"b: {'#' * 20}", f"b: {'#' * 6:<20}"),
)
def test_value_modifier(ue: UserEvents, modifier: str, one: str, two: str) -> None:
    """A value is shown in another base, as a percentage, or as a graph."""
    event = ue.event("u8 a; u8 b")
    shown = event.directory.trigger(f"hist:keys=a:vals=b.{modifier}:sort=a")
    if modifier != "hex" and not accepts_percent(ue):
        assert shown.errno == "EINVAL"
        return
    assert shown.errno == ""
    for payload in (b"\1\x0a", b"\1\x14", b"\2\x0a"):
        event.write(payload)
    assert f"{{ a:          1 }} hitcount:          2  {one}\n" in event.directory.hist
    assert f"{{ a:          2 }} hitcount:          1  {two}\n" in event.directory.hist


@case(spec="trace_events_hist.c:find_var_file", isolation="global")
@doc("Histogram variables: a variable of two events is named with its event")
def test_variable_not_unique(ue: UserEvents) -> None:
    """A name used by two events must be qualified with its event; that event's is read."""
    ue.register(e="u8 a; u8 b", other="u8 a; u8 b", reader="u8 a; u8 b")
    owner, other, reader = (
        ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other", "reader")
    )
    owner.trigger("hist:keys=a:x=b")
    other.trigger("hist:keys=a:x=b+100")
    ue.tracefs.clear_errors()
    assert reader.trigger("hist:keys=a:vals=$x").errno == "EINVAL"
    assert ue.tracefs.errors().startswith(
        f"hist:user_events:{ue.name('reader')}: error: Variable name not unique, need to use fully"
        " qualified name (subsys.event.var) for variable\n"
    )
    assert reader.trigger(f"hist:keys=a:y=user_events.{ue.name('other')}.$x+0:vals=b").errno == ""
    assert owner.trigger("!hist:keys=a:x=b").errno == ""
    assert other.trigger("!hist:keys=a:x=b+100").errno == "EBUSY"


@case(spec="trace_events_hist.c:create_var_field")
def test_variable_defined_twice(ue: UserEvents) -> None:
    """An event has a variable name only once, across all its histograms."""
    directory = ue.event("u8 a; u8 b").directory
    directory.trigger("hist:keys=a:x=b")
    assert directory.trigger("hist:keys=b:x=a").errno == "EINVAL"
    assert directory.trigger("hist:keys=b:y=a").errno == ""
    directory.trigger("!hist:keys=a:x=b")
    assert directory.trigger("hist:keys=b:vals=a:x=a").errno == ""
    directory.trigger("!hist:keys=b:y=a")
    directory.trigger("!hist:keys=b:vals=a:x=a")
    assert directory.enabled == "0\n"


@case(spec="trace_events_hist.c:hist_trigger_match")
@doc("Histogram variables; ! in front of the same text removes a histogram")
@variants(
    ("sums", "x=b+1", "x=b*7", False),
    ("constants", "x=5", "x=7", False),
    ("fields", "x=b", "x=a", True),
    ("names", "x=5", "y=5", True),
)
def test_variable_removed_by_another(ue: UserEvents, first: str, second: str, stays: bool) -> None:
    """Removal compares the names of variables and fields, not the operands of a sum."""
    directory = ue.event("u8 a; u8 b").directory
    directory.trigger(f"hist:keys=a:{first}")
    assert directory.trigger(f"!hist:keys=a:{second}").errno == ""
    left = f"hist:keys=a:vals=hitcount:{first}:sort=hitcount:size=2048 [active]\n"
    assert directory.triggers == (left if stays else "")


@case(spec="trace_events_hist.c:check_var_refs")
def test_variable_busy(ue: UserEvents) -> None:
    """A histogram stays while another reads its variable: EBUSY, and truncation removes nothing."""
    ue.register(e="u8 a; u8 b", other="u8 a; u8 b")
    owner, reader = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    owner.trigger("hist:keys=a:x=b")
    owner.trigger("hist:keys=b")
    reader.trigger("hist:keys=a:vals=$x")
    before = owner.triggers
    assert owner.trigger("!hist:keys=a:x=b").errno == "EBUSY"
    assert owner.trigger("traceon", os.O_WRONLY | os.O_TRUNC).errno == ""
    assert owner.triggers == f"traceon:unlimited\n{before}"
    assert owner.trigger("!hist:keys=b").errno == ""
    assert reader.trigger("traceon", os.O_WRONLY | os.O_TRUNC).errno == ""
    assert reader.triggers == "traceon:unlimited\n"
    assert owner.trigger("!hist:keys=a:x=b").errno == ""
    assert owner.triggers == "traceon:unlimited\n"


@case(spec="user_event_last_ref", needs="lasting_events")
@doc("@v6.12: Deleting: delete succeeds only without references; silent about histograms")
def test_variable_keeps_the_event(ue: UserEvents) -> None:
    """An event is deleted only after its histogram and that which reads its variable are gone."""
    for stem in ("e", "other"):
        ue.tracefs.command(f"u:{ue.name(stem)} u8 a; u8 b\n")
    data = ue.open_data()
    owner, reader = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    owner.trigger("hist:keys=a:x=b")
    reader.trigger("hist:keys=a:vals=$x")
    assert data.delete(ue.name()).errno == "EBUSY"
    assert owner.trigger("!hist:keys=a:x=b").errno == "EBUSY"
    reader.trigger("!hist:keys=a:vals=$x")
    assert (data.delete(ue.name("other")).errno, data.delete(ue.name()).errno) == ("", "EBUSY")
    assert owner.trigger("!hist:keys=a:x=b").errno == ""
    assert data.delete(ue.name()).errno == ""


@case(doc="pause, continue and clear of an existing one", switch="hist-vars-pause")
@spec("trace_events_hist.c:create_var_field, existing_hist_update_only")
def test_variable_is_never_paused(ue: UserEvents) -> None:
    """A histogram with variables can be paused, continued and cleared like any other."""
    data = ue.register(e="u8 a; u8 b", other="u8 a; u8 b")
    owner, reader = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    owner.trigger("hist:keys=a:x=b")
    reader.trigger("hist:keys=a:vals=$x")
    for word in ("pause", "cont", "clear"):
        updated = owner.trigger(f"hist:keys=a:x=b:{word}")
        assert updated.errno == ue.bug("hist-vars-pause", fixed="", present="EINVAL")
    # Without the variable it is another histogram.
    assert owner.trigger("hist:keys=a:clear").errno == "ENOENT"
    assert owner.triggers == "hist:keys=a:vals=hitcount:x=b:sort=hitcount:size=2048 [active]\n"
    data.write_event(0, b"\1\5")
    data.write_event(1, b"\1\0")
    assert reader.trigger("hist:keys=a:vals=$x:pause").errno == ""
    data.write_event(1, b"\1\0")
    assert "    Hits: 1\n" in reader.hist


@case(spec="trace_events_hist.c:save_hist_vars; trace.c:__remove_instance", isolation="global")
@doc("ftrace.rst@v6.12: Instances: removed with rmdir unless in use")
def test_variable_of_an_instance(ue: UserEvents) -> None:
    """A variable belongs to its instance: unknown in others, and the instance is EBUSY."""
    instance = create_instance(ue)
    ue.register(e="u8 a; u8 b", other="u8 a; u8 b")
    owner = instance.directory(ue.name())
    assert owner.trigger("hist:keys=a:x=b").errno == ""
    assert ue.tracefs.directory(ue.name("other")).trigger("hist:keys=a:vals=$x").errno == "EINVAL"
    assert instance.directory(ue.name("other")).trigger("hist:keys=a:vals=$x").errno == ""
    assert instance.remove().errno == "EBUSY"
    instance.directory(ue.name("other")).trigger("!hist:keys=a:vals=$x")
    assert instance.remove().errno == "EBUSY"
    owner.trigger("!hist:keys=a:x=b")
    assert instance.remove().value == 0
