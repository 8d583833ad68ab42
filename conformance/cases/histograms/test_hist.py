"""Histograms of user events: the trigger `hist` and the file of that name."""

import struct

from conformance.cases.case import UserEvents, surface, variants

DOC = "histogram.rst@v6.12: hist triggers"
case = surface("hist", doc=DOC, level="detail", tier="full", facilities="hist")


def histogram(definition: str, lines: str, hits: int, entries: int, dropped: int = 0) -> str:
    """The text of one histogram."""
    return (
        f"# event histogram\n#\n# trigger info: {definition}\n#\n\n{lines}\n"
        f"Totals:\n    Hits: {hits}\n    Entries: {entries}\n    Dropped: {dropped}\n"
    )


@case(spec="trace_events_hist.c:hist_trigger_show")
def test_counts(ue: UserEvents) -> None:
    """A histogram of a disabled event counts writes, and lists the smallest count first."""
    event = ue.event("u32 a")
    directory = event.directory
    assert directory.hist == ""
    assert directory.trigger("hist:keys=a").errno == ""
    assert directory.enabled == "0*\n"
    assert event.word_value == ue.dated("remote_enable", since=1, before=None)
    for number in (65, 7, 65, 65, 7, 3000000000):
        assert event.write(struct.pack("<I", number)).value == 8
    assert directory.hist == histogram(
        "hist:keys=a:vals=hitcount:sort=hitcount:size=2048 [active]",
        "{ a: 3000000000 } hitcount:          1\n"
        "{ a:          7 } hitcount:          2\n"
        "{ a:         65 } hitcount:          3\n",
        6,
        3,
    )
    assert ue.tracefs.records() == []
    assert directory.trigger("!hist:keys=a").errno == ""
    assert directory.hist == ""


@case(spec="trace_events_hist.c:hist_trigger_print_key", tier="quick", switch="hist-signed")
@variants(
    ("s8-negative", "s8", "a", b"\xff", "a: 18446744073709551615"),
    ("s16-negative", "s16", "a", b"\xfe\xff", "a: 18446744073709551614"),
    ("u8", "u8", "a", b"\xff", "a:        255"),
    ("u16-hex", "u16", "a.hex", b"\x34\x12", "a: 1234"),
    ("u64", "u64", "a", b"\0" * 7 + b"\x80", "a: 9223372036854775808"),
    ("s32-hex", "int", "a.hex", b"\xff\xff\xff\xff", "a: ffffffffffffffff"),
    ("u32-log2", "u32", "a.log2", b"\x41\0\0\0", "a: ~ 2^7 "),
    ("u32-log2-exact", "u32", "a.log2", b"\x40\0\0\0", "a: ~ 2^6 "),
    ("u8-buckets", "u8", "a.buckets=10", b"\x41", "a: ~ 60-69"),
    ("u64-symbol", "u64", "a.sym", b"\x41" + bytes(7), "a: [41] 0x41" + " " * 41),
)
def test_field(ue: UserEvents, field: str, key: str, payload: bytes, shown: str) -> None:
    """A key is shown as a number of its sign, or as its modifier says."""
    if field in ("s8", "s16"):
        signed = "a:         -1" if field == "s8" else "a:         -2"
        shown = ue.bug("hist-signed", fixed=signed, present=shown)
    event = ue.event(f"{field} a")
    event.directory.trigger(f"hist:keys={key}")
    event.write(payload)
    assert event.directory.hist == histogram(
        f"hist:keys={key}:vals=hitcount:sort=hitcount:size=2048 [active]",
        f"{{ {shown} }} hitcount:          1\n",
        1,
        1,
    )


@case(spec="trace_events_hist.c:add_to_key", profiles="6.4..", switch="hist-string-key-cut")
@variants(
    # The key has eight bytes, the last of which is for a NUL.
    ("full", "char[8]", [b"abcdefgh", b"hi\0\0\0\0\0\0"], ["abcdefg", "hi"]),
    ("char", "char[8]", [b"hello\0\0\0", b"hi\0\0\0\0\0\0"], ["hello", "hi"]),
    ("data_loc", "__data_loc char[]", [b"\x0c\0\6\0hello\0", b"\x0c\0\3\0hi\0"], ["hello", "hi"]),
    ("rel_loc", "__rel_loc char[]", [b"\0\0\6\0hello\0", b"\0\0\3\0hi\0"], ["hello", "hi"]),
    # The key has eight bytes here, too.
    ("full-four", "char[4]", [b"abcd", b"hi\0\0"], ["abcd", "hi"]),
)
def test_string(ue: UserEvents, field: str, payloads: list[bytes], texts: list[str]) -> None:
    """String keys are sorted as text, and shown up to their NUL or the end of the array."""
    if texts[0] == "abcdefg":
        texts = ue.bug("hist-string-key-cut", fixed=["abcdefgh", "hi"], present=texts)
    event = ue.event(f"{field} s")
    event.directory.trigger("hist:keys=s:sort=s")
    for payload in (*payloads, *payloads):
        event.write(payload)
    lines = "".join(f"{{ s: {text:<50} }} hitcount:          2\n" for text in texts)
    definition = "hist:keys=s:vals=hitcount:sort=s:size=2048 [active]"
    assert event.directory.hist == histogram(definition, lines, 4, 2)


@case(spec="trace_events_hist.c:hist_trigger_elt_update")
@variants(
    (
        "ascending",
        "hist:keys=a:vals=b:sort=b",
        "hist:keys=a:vals=hitcount,b:sort=b:size=2048",
        "{ a:          2 } hitcount:          1  b:          5\n"
        "{ a:          1 } hitcount:          2  b:         30\n",
    ),
    (
        "descending",
        "hist:keys=a:vals=hitcount,b:sort=b.descending",
        "hist:keys=a:vals=hitcount,b:sort=b.descending:size=2048",
        "{ a:          1 } hitcount:          2  b:         30\n"
        "{ a:          2 } hitcount:          1  b:          5\n",
    ),
    (
        "two-keys",
        "hist:keys=a,b:sort=a,b.descending:size=100",
        "hist:keys=a,b:vals=hitcount:sort=a,b.descending:size=128",
        "{ a:          1, b:         20 } hitcount:          1\n"
        "{ a:          1, b:         10 } hitcount:          1\n"
        "{ a:          2, b:          5 } hitcount:          1\n",
    ),
    (
        "other-words",
        "hist:key=b:val=a:sort=b",
        "hist:keys=b:vals=hitcount,a:sort=b:size=2048",
        "{ b:          5 } hitcount:          1  a:          2\n"
        "{ b:         10 } hitcount:          1  a:          1\n"
        "{ b:         20 } hitcount:          1  a:          1\n",
    ),
    (
        "condition",
        "hist:keys=b:sort=b if a == 1",
        "hist:keys=b:vals=hitcount:sort=b:size=2048 if a == 1",
        "{ b:         10 } hitcount:          1\n{ b:         20 } hitcount:          1\n",
    ),
)
def test_values(ue: UserEvents, text: str, definition: str, lines: str) -> None:
    """Values are summed by key, and entries sorted by keys or values."""
    event = ue.event("u8 a; u16 b")
    assert event.directory.trigger(text).errno == ""
    assert event.directory.triggers == f"{definition} [active]\n"
    for payload in (b"\1\x0a\0", b"\2\5\0", b"\1\x14\0"):
        event.write(payload)
    hits = lines.count("\n") if "hitcount:          2" not in lines else 3
    assert event.directory.hist == histogram(
        f"{definition} [active]", lines, hits, lines.count("\n")
    )
    event.directory.trigger(f"!{text}")
    assert event.directory.enabled == "0\n"


@case(spec="trace_events_hist.c:existing_hist_update_only")
def test_paused(ue: UserEvents) -> None:
    """A histogram is paused, continued and cleared by its own text; paused, it does not count."""
    event = ue.event("u8 a")
    definition = "hist:keys=a:vals=hitcount:sort=hitcount:size=2048"
    assert event.directory.trigger("hist:keys=a:cont").errno == "ENOENT"
    assert event.directory.trigger("hist:keys=a:clear").errno == "ENOENT"
    event.directory.trigger("hist:keys=a:pause")
    assert event.directory.triggers == f"{definition} [paused]\n"
    event.write(b"\1")
    assert event.directory.hist == histogram(f"{definition} [paused]", "", 0, 0)
    assert event.directory.trigger("hist:keys=a:cont").errno == ""
    event.write(b"\1")
    assert event.directory.hist == histogram(
        f"{definition} [active]", "{ a:          1 } hitcount:          1\n", 1, 1
    )
    assert event.directory.trigger("hist:keys=a:clear").errno == ""
    assert event.directory.hist == histogram(f"{definition} [active]", "", 0, 0)


@case(spec="trace_events_hist.c:hist_trigger_match")
def test_several(ue: UserEvents) -> None:
    """Histograms of an event may differ in keys, values, order or condition, not only in size."""
    event = ue.event("u8 a; u8 b")
    texts = ("keys=a", "keys=b", "keys=a:sort=a", "keys=a if b == 1")
    for text in texts:
        assert event.directory.trigger(f"hist:{text}").errno == ""
    assert event.directory.trigger("hist:keys=a:size=4096").errno == "EEXIST"
    assert event.directory.trigger("hist:keys=a if b == 1").errno == "EEXIST"
    event.write(b"\2\3")
    hits = [line for line in event.directory.hist.splitlines() if line.startswith("    Hits: ")]
    assert hits == ["    Hits: 1", "    Hits: 1", "    Hits: 1", "    Hits: 0"]
    # A histogram that differs is not found, which is no error.
    assert event.directory.trigger("!hist:keys=a if b == 2").errno == ""
    for text in texts:
        assert event.directory.enabled == "0*\n"
        assert event.directory.trigger(f"!hist:{text}").errno == ""
    assert event.directory.enabled == "0\n"


@case(spec="tracing_map.c:tracing_map_insert")
def test_full(ue: UserEvents) -> None:
    """A key that does not fit into the table is dropped and counted; known keys still count."""
    event = ue.event("u8 a")
    event.directory.trigger("hist:keys=a:sort=a:size=128")
    for number in (*range(131), 5, 130):
        event.write(bytes([number]))
    text = event.directory.hist
    assert text.endswith("\n\nTotals:\n    Hits: 129\n    Entries: 128\n    Dropped: 4\n")
    assert "{ a:          5 } hitcount:          2\n" in text
    assert "{ a:        127 } hitcount:          1\n\n" in text


@case(spec="trace_events_hist.c:event_hist_trigger_parse", bug="filter-errno")
@variants(
    ("unknown-key", "hist:keys=b", "EINVAL"),
    ("nothing", "hist", "EINVAL"),
    ("no-keys", "hist:vals=a", "EINVAL"),
    ("empty-keys", "hist:keys=", "EINVAL"),
    ("unknown-value", "hist:keys=a:vals=b", "EINVAL"),
    ("unknown-modifier", "hist:keys=a.bogus", "EINVAL"),
    ("unknown-word", "hist:keys=a:bogus", "EINVAL"),
    ("sort-other", "hist:keys=a:sort=b", "EINVAL"),
    ("sort-direction", "hist:keys=a:sort=a.bogus", "EINVAL"),
    ("too-small", "hist:keys=a:size=64", "EINVAL"),
    ("too-large", "hist:keys=a:size=131073", "EINVAL"),
    ("four-keys", "hist:keys=a,a,a,a", "EINVAL"),
    ("condition", "hist:keys=a if b == 1", "EINVAL"),
    ("condition-unclosed", "hist:keys=a if (a == 1", "ENOENT"),
)
def test_refused(ue: UserEvents, text: str, errno: str) -> None:
    """An invalid histogram is rejected, and no enable word changes."""
    event = ue.event("u8 a")
    directory = event.directory
    assert directory.trigger(text).errno == ue.bug("filter-errno", fixed="EINVAL", present=errno)
    assert directory.enabled == "0\n"
    assert event.word_value == ue.dated("remote_enable", since=0, before=None)
    assert directory.hist == ""


@case(spec="trace_events_hist.c:event_hist_trigger_parse", tier="quick")
def test_without_fields(ue: UserEvents) -> None:
    """An event without fields has no key to count by: EINVAL."""
    directory = ue.event().directory
    assert directory.trigger("hist:keys=a").errno == "EINVAL"
    assert directory.enabled == "0\n"


@case(spec="trace.c:trace_event_buffer_lock_reserve: temp_buffer", isolation="global")
def test_while_tracing_is_off(ue: UserEvents) -> None:
    """With tracing off a histogram still counts, even of an enabled event."""
    event = ue.event("u8 a", enabled=True)
    event.directory.trigger("hist:keys=a")
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "0\n")
    assert event.write(b"\1").value == 5
    ue.tracefs.write("/sys/kernel/tracing/tracing_on", "1\n")
    assert "{ a:          1 } hitcount:          1\n" in event.directory.hist
    assert ue.tracefs.records() == []


@case(spec="include/linux/trace_events.h:trace_trigger_soft_disabled")
def test_filter_apart(ue: UserEvents) -> None:
    """Records that the event's filter rejects are counted; malformed ones are not."""
    event = ue.event("u8 a; __rel_loc char[] s", enabled=True)
    event.directory.set_filter("a == 1")
    event.directory.trigger("hist:keys=a:sort=a")
    event.write(b"\1\0\0\2\0x\0")
    event.write(b"\2\0\0\2\0x\0")
    errno = ue.dated("dynamic_fields_validated", since="EFAULT", before="")
    assert event.write(b"\3\0\0\2\0xx").errno == errno
    assert "{ a:          2 } hitcount:          1\n" in event.directory.hist
    counted = ue.dated("dynamic_fields_validated", since=2, before=3)
    assert f"    Hits: {counted}\n" in event.directory.hist
