"""Registration strings: event names and text flags."""

from conformance.cases.case import UserEvents, doc, spec, surface, variants

DOC = "Command Format: the name comes first; silent about its characters and length"
case = surface("grammar", spec="user_event_parse", doc=DOC, level="behaviour")

ODD_NAMES = (".b", "-b", ";b", ",b", "\tb", "\"b'\\", "%s%n", "[3]", "=b", "größe")


@case(spec="user_event_parse_cmd")
def test_ioctl_names(ue: UserEvents) -> None:
    """The name is everything before the first space; only a colon is special."""
    data, word = ue.open_data(), ue.process.word()
    for bit, tail in enumerate(ODD_NAMES):
        assert data.register(f"{ue.name()}{tail} u32 a", word=word, bit=bit).errno == ""
    names = [line.rpartition(" u32 a")[0] for line in ue.tracefs.dynamic_events().splitlines()]
    assert names == [f"u:{ue.name()}{tail}" for tail in ODD_NAMES]
    lines = [ue.status_line(n, ue.name() + tail) for n, tail in enumerate(ODD_NAMES, 1)]
    assert sorted(ue.tracefs.status().splitlines(keepends=True)) == sorted(lines)


@case(spec="user_event_parse_cmd", needs="lasting_events", tier="full")
def test_dynamic_events_names(ue: UserEvents) -> None:
    """A name given to dynamic_events is as unrestricted; DIAG_IOCSDEL accepts it unchanged."""
    for tail in ODD_NAMES:
        assert ue.tracefs.command(f"u:{ue.name()}{tail} u32 a").errno == ""
    names = [line.rpartition(" u32 a")[0] for line in ue.tracefs.dynamic_events().splitlines()]
    assert names == [f"u:{ue.name()}{tail}" for tail in ODD_NAMES]
    data = ue.open_data()
    for tail in ODD_NAMES:
        assert data.delete(ue.name() + tail).value == 0


@case(spec="find_user_event, delete_user_event")
def test_long_names_differ(ue: UserEvents) -> None:
    """Names that differ in the last of 500 characters are two events, each with its own fields."""
    data = ue.open_data()
    stem = ue.name().ljust(499, "n")
    assert (data.register(f"{stem}a u32 x").index, data.register(f"{stem}b u64 x").index) == (0, 1)
    assert data.delete(f"{stem}c").errno == "ENOENT"
    assert ue.tracefs.dynamic_events() == f"u:{stem}a u32 x\nu:{stem}b u64 x\n"


@case(spec="trace_events.c:event_create_dir", level="detail", tier="full")
@doc("Registering: events show up in tracefs like any other event; silent about odd names")
def test_name_has_a_directory(ue: UserEvents) -> None:
    """An event has a directory of its name, whatever its characters."""
    data, word = ue.open_data(), ue.process.word()
    for bit, tail in enumerate(ODD_NAMES):
        data.register(ue.name() + tail, word=word, bit=bit)
    for tail in ODD_NAMES:
        assert ue.tracefs.enabled(ue.name() + tail).text == "0\n"


@case(spec="trace_events.c:event_create_dir", level="detail", switch="event-name-slash")
@doc("Registering: events show up in tracefs like any other event; silent about odd names")
def test_name_with_slash(ue: UserEvents) -> None:
    """A name with a slash, which has no reachable path in tracefs, is EINVAL."""
    name = ue.name() + "/b"
    errno = ue.bug("event-name-slash", fixed="EINVAL", present="")
    assert ue.open_data().register(name).errno == errno
    assert ue.tracefs.dynamic_events() == ("" if errno else f"u:{name}\n")
    assert ue.tracefs.enabled(name).errno == "ENOENT"


@case(spec="find_user_event")
def test_name_is_case_sensitive(ue: UserEvents) -> None:
    """Names that differ in case are two events, each with its own fields."""
    data = ue.open_data()
    assert data.register(f"{ue.name('e')} u32 a").index == 0
    assert data.register(f"{ue.name('E')} u64 a").index == 1


@case(level="detail", tier="full", isolation="global", bug="event-name-slash")
@spec("user_event_parse_cmd")
@variants(("no-fields", "", "u:\n"), ("fields", " u32 a", "u: u32 a\n"))
def test_empty_name(ue: UserEvents, text: str, line: str) -> None:
    """An empty name is EINVAL."""
    data = ue.open_data()
    event = data.register(text)
    assert event.errno == ue.bug("event-name-slash", fixed="EINVAL", present="")
    assert ue.tracefs.dynamic_events(whole=True) == ("" if event.errno else line)
    if event.errno:
        return
    if ue.profile.has("remote_enable"):
        data.unregister(event.word)
    data.close()
    ue.tracefs.dynamic_events(whole=True, eventually=True)


@case(level="detail", needs="lasting_events", isolation="global", bug="event-name-slash")
@spec("user_event_create")
def test_prefix_alone(ue: UserEvents) -> None:
    """The bare prefix, which would create an event with an empty name, is EINVAL."""
    errno = ue.bug("event-name-slash", fixed="EINVAL", present="")
    assert ue.tracefs.command("u:\n").errno == errno
    assert ue.tracefs.dynamic_events(whole=True) == ("" if errno else "u:\n")
    assert ue.open_data().delete("").errno == ("ENOENT" if errno else "")


@case(level="detail", needs="lasting_events", isolation="global", bug="event-name-slash")
@spec("user_event_create")
@doc("Overview: a command is the text of the ioctl after u:; silent about systems")
def test_prefix_and_system(ue: UserEvents) -> None:
    """A command names no system: the slash that follows one is part of the name, EINVAL."""
    errno = ue.bug("event-name-slash", fixed="EINVAL", present="")
    assert ue.tracefs.command("u:user_events/e\n").errno == errno
    assert ue.tracefs.dynamic_events(whole=True) == ("" if errno else "u:user_events/e\n")
    left = ue.open_data()
    assert left.delete("e").errno == "ENOENT"
    assert left.delete("user_events/e").errno == ("ENOENT" if errno else "")


@case(spec="user_event_create", level="detail", needs="lasting_events", isolation="global")
def test_prefix_and_fields(ue: UserEvents) -> None:
    """dynamic_events cannot create fields with an empty name: the type is parsed as the name."""
    assert ue.tracefs.command("u: u32 a\n").errno == "EINVAL"
    assert ue.tracefs.dynamic_events(whole=True) == ""


@case(spec="trace_dynevent.c:create_dyn_event", level="detail")
@doc("Overview: commands of user events have the prefix u:; silent about the error of others")
def test_prefix_of_others(ue: UserEvents) -> None:
    """A line without the prefix u: matches no event type and is rejected."""
    for prefix in ("", "ue:", "U:", " u:", "u "):
        assert ue.tracefs.command(f"{prefix}{ue.name()} u32 a\n").errno == "EINVAL"
    assert ue.tracefs.dynamic_events() == ""


FLAG_TEXTS = (":", ":FLAG", ":ONE,TWO", ":BPF_ITER", "::", ":FLAG u32 a")


@case(tier="full")
@doc("Command Format: flags may follow the name, none is supported yet; silent about the error")
def test_ioctl_text_flags(ue: UserEvents) -> None:
    """A colon in the name starts text flags, and every flag is unknown, even an empty one."""
    data, word = ue.open_data(), ue.process.word()
    # Old kernels cut them off and ignored them.
    errno = ue.dated("text_flags_refused", since="EINVAL", before="")
    lines = []
    for bit, text in enumerate(FLAG_TEXTS):
        assert data.register(f"{ue.name(f'e{bit}')}{text}", word=word, bit=bit).errno == errno
        lines.append(f"u:{ue.name(f'e{bit}')}{' u32 a' if ' ' in text else ''}\n")
    shown = ue.dated("text_flags_refused", since="", before="".join(lines))
    assert ue.tracefs.dynamic_events() == shown


@case(needs="lasting_events")
@doc("Command Format: flags may follow the name, none is supported yet; silent about the error")
def test_dynamic_events_text_flags(ue: UserEvents) -> None:
    """dynamic_events rejects text flags as well."""
    # Old kernels cut them off and ignored them.
    errno = ue.dated("text_flags_refused", since="EINVAL", before="")
    lines = []
    for number, text in enumerate(FLAG_TEXTS):
        assert ue.tracefs.command(f"u:{ue.name(f'e{number}')}{text}\n").errno == errno
        lines.append(f"u:{ue.name(f'e{number}')}{' u32 a' if ' ' in text else ''}\n")
    shown = ue.dated("text_flags_refused", since="", before="".join(lines))
    assert ue.tracefs.dynamic_events() == shown


@case(level="detail")
@doc("Command Format: flags may follow the name; silent about which of two errors is reported")
def test_flags_of_an_existing_event(ue: UserEvents) -> None:
    """Text flags are rejected before the name is looked up: EINVAL, not EADDRINUSE."""
    data = ue.event("u32 a").data
    # Where flags are ignored they are not part of the name.
    unlike = ue.dated("arguments_matched", since="EADDRINUSE", before="")
    errno = ue.dated("text_flags_refused", since="EINVAL", before=unlike)
    assert data.register(f"{ue.name()}:FLAG u64 b").errno == errno
