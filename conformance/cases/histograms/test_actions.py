"""Histogram actions: synthetic events generated from user events, and saved values."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants

SPEC = "trace_events_synth.c"
DOC = "histogram.rst@v6.12: Hist trigger 'handlers' and 'actions'"
case = surface("hist", SPEC, DOC, level="detail", tier="full", facilities="hist")

SYNTHETIC = "synthetic"
OTHER_TYPE = "Param type doesn't match synthetic event field type"
OTHER_COUNT = "Param count doesn't match synthetic event field count"
SECOND_SAVE = "Can't have more than one save() action per hist"


def create_synthetic(ue: UserEvents, fields: str) -> str:
    """Create an enabled synthetic event with these fields; returns its name."""
    name = ue.name("made")
    assert ue.tracefs.command(f"s:{name} {fields}\n").errno == ""
    assert ue.tracefs.enable(name, system=SYNTHETIC).errno == ""
    return name


@case(isolation="global", bug="action-param-one-letter")
@spec("trace_events_hist.c:action_parse, create_actions, hist_err")
@doc("Hist trigger 'handlers' and 'actions'; error_log says what is wrong, and where")
@variants(
    (
        "no-event",
        "onmatch(user_events.nope).trace(nope,xx)",
        "Invalid subsystem or event name",
        "nope",
    ),
    ("no-system", "onmatch(nope).trace(nope,xx)", "Missing subsystem", "nope"),
    ("no-closing", "onmatch(nope", "No closing paren found", "nope"),
    ("no-action", "onmax($xx)", "No action found", "hist:"),
    ("short-name", "onmax($xx).save(a)", "Invalid action param", "a"),
    (
        "not-a-variable",
        "onmax(xx).save(bb)",
        "For onmax(x) or onchange(x), x must be a variable",
        "xx",
    ),
    ("no-variable", "onchange($yy).save(bb)", "Couldn't find onmax or onchange variable", "yy"),
    ("no-synthetic-event", "onmax($xx).trace(nope,$xx)", "Couldn't find synthetic event", "nope"),
)
def test_action_refused(ue: UserEvents, text: str, message: str, near: str) -> None:
    """An invalid action is EINVAL, and error_log has the reason."""
    event = ue.event("u8 a; u8 bb")
    ue.tracefs.clear_errors()
    command = f"hist:keys=a:xx=bb:{text}"
    refused = event.directory.trigger(command)
    if text.endswith("save(a)"):
        assert refused.errno == ue.bug("action-param-one-letter", fixed="", present="EINVAL")
    if not refused.errno:
        assert event.directory.trigger(f"!{command}").errno == ""
        return
    assert refused.errno == "EINVAL"
    assert ue.tracefs.errors() == (
        f"hist:user_events:{ue.name()}: error: {message}\n  Command: {command}\n"
        f"           {' ' * command.find(near)}^\n"
    )
    assert event.directory.enabled == "0\n"
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)


@case(spec="trace_events_hist.c:parse_action_params", switch="action-param-one-letter")
def test_action_of_one_letter(ue: UserEvents) -> None:
    """A parameter of an action may be a field whose name has one letter."""
    created = ue.event("u8 a; u8 b").directory.trigger("hist:keys=a:xx=b:onmax($xx).save(b)")
    assert created.errno == ue.bug("action-param-one-letter", fixed="", present="EINVAL")


@case(spec="trace_events_hist.c:check_synth_field, save_track_data_vars", isolation="global")
@variants(
    ("type", "onmax($xx).trace({},$yy)", "EINVAL", OTHER_TYPE),
    ("too-many", "onmax($xx).trace({},$xx,$xx)", "EINVAL", OTHER_TYPE),
    ("too-few", "onmax($xx).trace({})", "EINVAL", OTHER_COUNT),
    (
        "save-on-match",
        "onmatch(user_events.{}).save(bb)",
        "EINVAL",
        "Handler doesn't support action",
    ),
    ("save-twice", "onmax($xx).save(bb):onchange($xx).save(cc)", "EEXIST", SECOND_SAVE),
    ("save-unknown", "onmax($xx).save(nope)", "EINVAL", "Couldn't create field variable"),
)
def test_action_does_not_fit(ue: UserEvents, text: str, errno: str, message: str) -> None:
    """The arguments of an action must match the fields of the synthetic event."""
    event = ue.event("u8 a; u8 bb; u16 cc")
    create_synthetic(ue, "u8 v")
    ue.tracefs.clear_errors()
    action = text.format(ue.name("e" if "onmatch" in text else "made"))
    assert event.directory.trigger(f"hist:keys=a:xx=bb:yy=cc:{action}").errno == errno
    assert ue.tracefs.errors().count(f": error: {message}\n") == 1
    assert event.directory.enabled == "0\n"


@case(spec="trace_events_hist.c:action_trace, trace_action_create")
@variants(
    ("trace", "trace({},aa,$dd)", 7),
    ("by-its-name", "{}(aa,$dd)", 7),
    ("of-the-other", "trace({},aa,$x0)", 3),
)
def test_onmatch(ue: UserEvents, action: str, worth: int) -> None:
    """Two user events with the same key generate a synthetic event from the values of both."""
    data = ue.register(e="u8 aa; u8 bb", other="u8 aa; u8 bb")
    name = create_synthetic(ue, "u8 k; u8 d")
    first, second = (ue.tracefs.directory(ue.name(stem)) for stem in ("e", "other"))
    first.trigger("hist:keys=aa:x0=bb")
    match = f"onmatch(user_events.{ue.name()}).{action.format(name)}"
    assert second.trigger(f"hist:keys=aa:dd=bb-$x0:{match}").errno == ""
    assert second.triggers == (
        f"hist:keys=aa:vals=hitcount:dd=bb-$x0:sort=hitcount:size=2048:{match} [active]\n"
    )
    data.write_event(1, b"\1\x0a")
    assert ue.tracefs.records() == []
    data.write_event(0, b"\1\3")
    for _ in range(2):
        data.write_event(1, b"\1\x0a")
    assert ue.tracefs.records() == [f"{name}: k=1 d={worth}"]


@case(spec="synth_event_release")
@doc("Hist trigger 'handlers' and 'actions'; a synthetic event is removed when nothing uses it")
def test_synthetic_event_is_busy(ue: UserEvents) -> None:
    """A synthetic event stays while a user event's histogram generates it or a tracer uses it."""
    event = ue.event("u8 aa; u8 bb")
    name = create_synthetic(ue, "u8 v")
    text = f"hist:keys=aa:xx=bb:onmax($xx).trace({name},$xx)"
    event.directory.trigger(text)
    removal = f"-:synthetic/{name}\n"
    ue.tracefs.disable(name, system=SYNTHETIC)
    assert ue.tracefs.command(removal).errno == "EBUSY"
    ue.tracefs.enable(name, system=SYNTHETIC)
    event.directory.trigger(f"!{text}")
    assert ue.tracefs.command(removal).errno == "EBUSY"
    ue.tracefs.disable(name, system=SYNTHETIC)
    assert (ue.tracefs.command(removal).errno, ue.tracefs.command(removal).errno) == ("", "ENOENT")
    assert event.directory.trigger(text).errno == "EINVAL"


@case(spec="print_synth_event_num_val", switch="synth-sign")
@doc("events.rst@v6.12: Synthetic events: fields of s8 to u64")
@variants(
    ("s8", b"\xff", "-1", "255"),
    ("s16", b"\xfe\xff", "-2", "65534"),
    ("s32", b"\xfd\xff\xff\xff", "-3", "-3"),
    ("s64", b"\xfc\xff\xff\xff\xff\xff\xff\xff", "-4", "-4"),
    ("u8", b"\xff", "255", "255"),
)
def test_synthetic_signs(ue: UserEvents, kind: str, value: bytes, fixed: str, present: str) -> None:
    """A field of a user event is copied unchanged to a synthetic one and printed by its size."""
    event = ue.event(f"u8 aa; {kind} bb")
    name = create_synthetic(ue, f"{kind} v")
    assert event.directory.trigger(f"hist:keys=aa:xx=bb:onchange($xx).trace({name},bb)").errno == ""
    event.write(b"\1" + value)
    if kind == "s64" and not ue.profile.has("synthetic_numbers_printed"):
        return
    shown = ue.bug("synth-sign", fixed=fixed, present=present)
    assert ue.tracefs.records() == [f"{name}: v={shown}"]


@case(spec="trace_events_hist.c:ontrack_action, track_data_print")
@variants(("onmax", "max", 9, 3), ("onchange", "changed", 4, 5))
def test_tracked(ue: UserEvents, handler: str, label: str, worth: int, with_it: int) -> None:
    """onmax and onchange save the fields that came with the largest, or latest other, value."""
    event = ue.event("u8 aa; u8 bb; u8 cc")
    text = f"hist:keys=aa:xx=bb:{handler}($xx).save(cc)"
    assert event.directory.trigger(text).errno == ""
    assert event.directory.triggers == (
        f"hist:keys=aa:vals=hitcount:xx=bb:sort=hitcount:size=2048:{handler}($xx).save(cc)"
        " [active]\n"
    )
    for payload in (b"\1\7\1", b"\1\7\2", b"\1\x09\3", b"\1\x09\4", b"\1\4\5", b"\1\4\6"):
        event.write(payload)
    assert (
        f"\n{{ aa:          1 }} hitcount:          6\n\t{label}:          {worth}"
        f"  cc:          {with_it}\n" in event.directory.hist
    )
    assert event.directory.trigger(f"!{text}").errno == ""
    assert event.directory.enabled == "0\n"


@case(spec="trace_events_hist.c:check_track_val_max, check_track_val_changed")
@variants(("onmax", "max"), ("onchange", "changed"))
def test_tracked_nothing(ue: UserEvents, handler: str, label: str) -> None:
    """A value that has always been 0 is neither a maximum nor a change."""
    event = ue.event("u8 aa; u8 bb; u8 cc")
    event.directory.trigger(f"hist:keys=aa:xx=bb:{handler}($xx).save(cc)")
    event.write(b"\1\0\5")
    assert (
        f"\n{{ aa:          1 }} hitcount:          1\n\t{label}:          0  cc:          0\n"
        in event.directory.hist
    )


@case(spec="trace_events_hist.c:ontrack_action, track_data_print")
@variants(("onmax", [5, 9]), ("onchange", [5, 9, 4, 0]))
def test_tracked_and_told(ue: UserEvents, handler: str, recorded: list[int]) -> None:
    """Each new maximum, or change, of a value generates a synthetic event."""
    event = ue.event("u8 aa; u8 bb")
    name = create_synthetic(ue, "u8 v")
    text = f"hist:keys=aa:xx=bb:{handler}($xx).trace({name},$xx) if bb != 7"
    assert event.directory.trigger(text).errno == ""
    for number in (0, 5, 5, 9, 7, 4, 0):
        assert event.write(bytes([1, number])).value == 6
    assert ue.tracefs.records() == [f"{name}: v={number}" for number in recorded]
