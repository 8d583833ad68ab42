"""Registration strings: what the name of an event may be, and what stands beside it."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.client.user_events import UserEvents

case = surface(
    "grammar",
    spec="trace_events_user.c",
    doc="Documentation/trace/user_events.rst@v6.12: Command Format: name, optional flags, fields "
    "separated by semicolons",
)


# Names of events


ODD_NAMES = (".b", "-b", ";b", ",b", "\tb", "\"b'\\", "%s%n", "[3]", "=b", "größe")


@case(spec="user_event_parse_cmd", tier="full")
def test_ioctl_names(ue: UserEvents) -> None:
    """The name of an event is whatever stands before the first space; only : is special."""
    data, word = ue.open_data(), ue.process.word()
    for bit, tail in enumerate(ODD_NAMES):
        assert data.register(f"{ue.name()}{tail} u32 a", word=word, bit=bit).errno == ""
    names = [line.rpartition(" u32 a")[0] for line in ue.tracefs.dynamic_events().splitlines()]
    assert names == [f"u:{ue.name()}{tail}" for tail in ODD_NAMES]
    lines = [ue.status_line(n, ue.name() + tail) for n, tail in enumerate(ODD_NAMES, 1)]
    assert sorted(ue.tracefs.status().splitlines(keepends=True)) == sorted(lines)


@case(
    spec="user_event_parse_cmd",
    doc="Documentation/trace/user_events.rst@v6.12: Overview: dynamic_events takes the same "
    "format behind the prefix u:",
    needs="lasting_events",
    tier="full",
)
def test_dynamic_events_names(ue: UserEvents) -> None:
    """The name of an event made through dynamic_events is as free; DEL takes it as it is."""
    for tail in ODD_NAMES:
        assert ue.tracefs.command(f"u:{ue.name()}{tail} u32 a").errno == ""
    names = [line.rpartition(" u32 a")[0] for line in ue.tracefs.dynamic_events().splitlines()]
    assert names == [f"u:{ue.name()}{tail}" for tail in ODD_NAMES]
    data = ue.open_data()
    for tail in ODD_NAMES:
        assert data.delete(ue.name() + tail).value == 0


@case(spec="find_user_event, delete_user_event")
def test_long_names_differ(ue: UserEvents) -> None:
    """Names that differ in the last of 500 characters are two events, each with its fields."""
    data = ue.open_data()
    stem = ue.name().ljust(499, "n")
    assert data.register(f"{stem}a u32 x").index == 0
    assert data.register(f"{stem}b u64 x").index == 1
    assert data.delete(f"{stem}c").errno == "ENOENT"
    assert ue.tracefs.dynamic_events() == f"u:{stem}a u32 x\nu:{stem}b u64 x\n"


@case(spec="trace_events.c:event_create_dir", tier="full")
def test_name_has_a_directory(ue: UserEvents) -> None:
    """An event has a directory of its name, whatever characters that is made of."""
    data, word = ue.open_data(), ue.process.word()
    for bit, tail in enumerate(ODD_NAMES):
        data.register(ue.name() + tail, word=word, bit=bit)
    for tail in ODD_NAMES:
        assert ue.tracefs.enabled(ue.name() + tail).text == "0\n"


@case(spec="trace_events.c:event_create_dir")
def test_name_with_slash(ue: UserEvents) -> None:
    """An event with a slash in its name registers and is listed, but no path leads to it."""
    name = ue.name() + "/b"
    assert ue.open_data().register(name).value == 0
    assert ue.tracefs.dynamic_events() == f"u:{name}\n"
    assert ue.tracefs.enabled(name).errno == "ENOENT"


@case(spec="find_user_event")
def test_name_is_case_sensitive(ue: UserEvents) -> None:
    """Names that differ in case are two events, each with fields of its own."""
    data = ue.open_data()
    assert data.register(f"{ue.name('e')} u32 a").index == 0
    assert data.register(f"{ue.name('E')} u64 a").index == 1


@case(spec="user_event_parse_cmd", tier="full", isolation="global")
@variants(("no-fields", "", "u:\n"), ("fields", " u32 a", "u: u32 a\n"))
def test_empty_name(ue: UserEvents, text: str, line: str) -> None:
    """An event may have no name at all."""
    data = ue.open_data()
    event = data.register(text)
    assert event.errno == ""
    assert ue.tracefs.dynamic_events(whole=True) == line
    if ue.profile.has("remote_enable"):
        data.unregister(event.word)
    data.close()
    ue.tracefs.dynamic_events(whole=True, eventually=True)


@case(
    spec="user_event_create",
    doc="Documentation/trace/user_events.rst@v6.12: Overview: dynamic_events takes the same "
    "format behind the prefix u:",
    needs="lasting_events",
    isolation="global",
)
def test_prefix_alone(ue: UserEvents) -> None:
    """The bare prefix makes an event without a name in dynamic_events, which DEL takes away."""
    assert ue.tracefs.command("u:\n").errno == ""
    assert ue.tracefs.dynamic_events(whole=True) == "u:\n"
    assert ue.open_data().delete("").value == 0


@case(
    spec="user_event_create",
    doc="Documentation/trace/user_events.rst@v6.12: Overview: dynamic_events takes the same "
    "format behind the prefix u:",
    needs="lasting_events",
    isolation="global",
)
def test_prefix_and_fields(ue: UserEvents) -> None:
    """dynamic_events cannot have fields without a name: the type is taken for the name."""
    assert ue.tracefs.command("u: u32 a\n").errno == "EINVAL"
    assert ue.tracefs.dynamic_events(whole=True) == ""


@case(
    spec="trace_dynevent.c:create_dyn_event",
    doc="Documentation/trace/user_events.rst@v6.12: Overview: dynamic_events takes the same "
    "format behind the prefix u:",
)
def test_prefix_of_others(ue: UserEvents) -> None:
    """A line of dynamic_events without the prefix u: is nobody's, and refused."""
    for prefix in ("", "ue:", "U:", " u:", "u "):
        assert ue.tracefs.command(f"{prefix}{ue.name()} u32 a\n").errno == "EINVAL"
    assert ue.tracefs.dynamic_events() == ""


# Flags as text


FLAG_TEXTS = (":", ":FLAG", ":ONE,TWO", ":BPF_ITER", "::", ":FLAG u32 a")


@case(
    spec="user_event_parse",
    doc="Documentation/trace/user_events.rst@v6.12: Command Format: flags may follow the name; "
    "none is supported yet",
    tier="full",
)
def test_ioctl_text_flags(ue: UserEvents) -> None:
    """A colon in the name part begins text flags, none of which is known, not even none."""
    data, word = ue.open_data(), ue.process.word()
    # They used to be cut off and ignored.
    errno = ue.dated("text_flags_refused", since="EINVAL", before="")
    made = []
    for bit, text in enumerate(FLAG_TEXTS):
        assert data.register(f"{ue.name(f'e{bit}')}{text}", word=word, bit=bit).errno == errno
        made.append(f"u:{ue.name(f'e{bit}')}{' u32 a' if ' ' in text else ''}\n")
    shown = ue.dated("text_flags_refused", since="", before="".join(made))
    assert ue.tracefs.dynamic_events() == shown


@case(
    spec="user_event_parse",
    doc="Documentation/trace/user_events.rst@v6.12: Command Format: flags may follow the name; "
    "none is supported yet",
    needs="lasting_events",
)
def test_dynamic_events_text_flags(ue: UserEvents) -> None:
    """Text flags are refused by dynamic_events as well."""
    # They used to be cut off and ignored.
    errno = ue.dated("text_flags_refused", since="EINVAL", before="")
    made = []
    for number, text in enumerate(FLAG_TEXTS):
        assert ue.tracefs.command(f"u:{ue.name(f'e{number}')}{text}\n").errno == errno
        made.append(f"u:{ue.name(f'e{number}')}{' u32 a' if ' ' in text else ''}\n")
    shown = ue.dated("text_flags_refused", since="", before="".join(made))
    assert ue.tracefs.dynamic_events() == shown


@case(
    spec="user_event_parse",
    doc="Documentation/trace/user_events.rst@v6.12: Command Format: flags may follow the name; "
    "none is supported yet",
)
def test_flags_of_an_existing_event(ue: UserEvents) -> None:
    """Text flags are refused before the name is looked for: EINVAL, not EADDRINUSE."""
    data = ue.open_data()
    data.register(f"{ue.name()} u32 a")
    # Where they were ignored they are no part of the name that is found.
    unlike = ue.dated("arguments_matched", since="EADDRINUSE", before="")
    errno = ue.dated("text_flags_refused", since="EINVAL", before=unlike)
    assert data.register(f"{ue.name()}:FLAG u64 b").errno == errno
