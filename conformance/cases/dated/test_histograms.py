"""Dated changes of histograms."""

from conformance.cases.case import UserEvents, doc, spec, surface

SPEC = "trace_events_hist.c"
DOC = "histogram.rst@v6.12: Hist trigger: silent"
case = surface("dated", SPEC, DOC, level="detail", isolation="global", facilities="hist")


@case(spec="parse_field", switch="percent_and_graph")
@doc("Hist trigger: .percent and .graph of values")
def test_percent_and_graph(ue: UserEvents) -> None:
    """A value has the modifier .percent: error_log does not blame the word itself."""
    directory = ue.event("u8 a; u8 b").directory
    ue.tracefs.clear_errors()
    text = "hist:keys=a:vals=b.percent"
    refused = directory.trigger(text).errno
    if refused:
        # The caret marks the modifier if it is unknown, and the value if it is refused.
        line = ue.tracefs.errors().splitlines()[-1]
        unknown = line.index("^") == len("  Command: ") + text.index("percent")
        assert unknown == ue.dated("percent_and_graph", since=False, before=True)
    else:
        assert ue.dated("percent_and_graph", since=refused, before="EINVAL") == ""


@case(spec="__create_val_field", switch="value_modifiers_refused")
@doc("Hist trigger: .log2 displays a key by its logarithm")
def test_value_modifiers_refused(ue: UserEvents) -> None:
    """A value cannot be shown by its logarithm: EINVAL; before, it was accepted."""
    errno = ue.event("u8 a; u8 b").directory.trigger("hist:keys=a:vals=b.log2").errno
    assert errno == ue.dated("value_modifiers_refused", since="EINVAL", before="")


@case(needs="percent_and_graph value_modifiers_refused", switch="percent_and_graph_kept")
@spec("__create_val_field")
@doc("Hist trigger: .graph displays a value as a bar")
def test_percent_and_graph_kept(ue: UserEvents) -> None:
    """A value can be shown as a graph; for some releases, it was refused with others."""
    errno = ue.event("u8 a; u8 b").directory.trigger("hist:keys=a:vals=b.graph").errno
    assert errno == ue.dated("percent_and_graph_kept", since="", before="EINVAL")


@case(spec="event_hist_trigger_parse: save_hist_vars", switch="reading_histogram_busy")
@doc("Hist trigger 'handlers' and 'actions': silent about removal")
def test_reading_histogram_busy(ue: UserEvents) -> None:
    """A variable that only an action of another histogram reads keeps its own: EBUSY."""
    ue.register(e="u8 a; u8 b", other="u8 a; u8 b")
    owner, reader = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    made = ue.name("made")
    assert ue.tracefs.command(f"s:{made} u8 v\n").errno == ""
    assert owner.trigger("hist:keys=a:x=b").errno == ""
    text = f"hist:keys=a:onmatch(user_events.{ue.name()}).trace({made},$x)"
    assert reader.trigger(text).errno == ""
    removed = owner.trigger("!hist:keys=a:x=b").errno
    assert removed == ue.dated("reading_histogram_busy", since="EBUSY", before="")
    reader.trigger(f"!{text}")
    owner.trigger("!hist:keys=a:x=b")
    ue.tracefs.command(f"-:synthetic/{made}\n")


# Before, an address is shown.
@case(needs="synthetic_numbers_printed", switch="synthetic_numbers_printed")
@doc("events.rst@v6.12: Synthetic events: fields of s8 to u64")
@spec("trace_events_synth.c:print_synth_event_num_val")
def test_synthetic_numbers_printed(ue: UserEvents) -> None:
    """A synthetic event shows the value of its u64 field."""
    event, made = ue.event("u8 aa; u64 bb"), ue.name("made")
    assert ue.tracefs.command(f"s:{made} u64 v\n").errno == ""
    assert ue.tracefs.enable(made, system="synthetic").errno == ""
    text = f"hist:keys=aa:xx=bb:onchange($xx).trace({made},bb)"
    assert event.directory.trigger(text).errno == ""
    event.write(b"\1" + b"\7" + bytes(7))
    assert ue.tracefs.records() == [f"{made}: v=7"]
    event.directory.trigger(f"!{text}")
    ue.tracefs.disable(made, system="synthetic")
    ue.tracefs.command(f"-:synthetic/{made}\n")
