"""ftrace filters on string fields of user events, which are typed as strings since 6.4."""

import struct

from conformance.cases.case import UserEvents, spec, surface, variants

DOC = "events.rst@v6.12: Event filtering: ==, != and ~ for string fields"
case = surface("filter", doc=DOC, level="detail", profiles="6.4..")

WORDS = ("hello", "help", "yellow", "h")
FIELDS = {
    "char": " char[8] s",
    "data_loc": " __data_loc char[] s",
    "rel_loc": " __rel_loc char[] s",
    "unsigned": " unsigned char[8] s",
}
PATTERNS = {
    "equal": ('s == "help"', ["help"]),
    "unequal": ('s != "help"', ["hello", "yellow", "h"]),
    "quotes": ("s == 'h'", ["h"]),
    "beginning": ('s ~ "hel*"', ["hello", "help"]),
    "within": ('s ~ "*ell*"', ["hello", "yellow"]),
    "no-star": ('s ~ "hel"', []),
    "question": ('s ~ "he?p"', ["help"]),
    "class": ('s ~ "[hy]el*o*"', ["hello", "yellow"]),
    "inner-star": ('s ~ "h*o"', ["hello"]),
    "not": ('s ~ "!h*"', ["yellow"]),
    "not-twice": ('s ~ "!!h*"', ["hello", "help", "yellow", "h"]),
    "everything": ('s ~ "*"', ["hello", "help", "yellow", "h"]),
    "with-others": ('s ~ "h*" && !(s == "h")', ["hello", "help"]),
}


def payload(kind: str, word: str) -> bytes:
    """An event with a string as its only field."""
    text = word.encode() + b"\0"
    if kind in ("char", "unsigned"):
        return text.ljust(8, b"\0")
    start = 12 if kind == "data_loc" else 0
    return struct.pack("<HH", start, len(text)) + text


@case(spec="trace_events_filter.c:filter_build_regex", tier="full")
@variants(
    {
        f"{kind}.{name}": (kind, *found)
        for kind in ("char", "data_loc", "rel_loc")
        for name, found in PATTERNS.items()
    }
    | {"unsigned.equal": ("unsigned", *PATTERNS["equal"])}
)
def test_string(ue: UserEvents, kind: str, text: str, kept: list[str]) -> None:
    """Strings are compared as a whole or with a glob."""
    data = ue.register(ue.name() + FIELDS[kind])
    ue.tracefs.enable(ue.name())
    assert ue.tracefs.directory(ue.name()).set_filter(text).errno == ""
    for word in WORDS:
        assert data.write_event(0, payload(kind, word)).errno == ""
    assert ue.tracefs.records() == [ue.line(f"s={word}") for word in kept]


@case(spec="trace_events_filter.c:regex_match_end", tier="full", switch="filter-end-pattern")
@variants(("char", []), ("data_loc", ["hello"]), ("rel_loc", ["hello"]))
def test_string_ending(ue: UserEvents, kind: str, present: list[str]) -> None:
    """A glob for the end is compared with the end of the string."""
    data = ue.register(ue.name() + FIELDS[kind])
    ue.tracefs.enable(ue.name())
    assert ue.tracefs.directory(ue.name()).set_filter('s ~ "*lo"').errno == ""
    for word in WORDS:
        data.write_event(0, payload(kind, word))
    # An array is compared up to the byte before its last one, which is here a NUL.
    kept = ue.bug("filter-end-pattern", fixed=["hello"], present=present)
    assert ue.tracefs.records() == [ue.line(f"s={word}") for word in kept]


@case(spec="trace_events_filter.c:regex_match_full", tier="full", bug="filter-end-pattern")
@variants(
    ("equal", 's == "abcd"', 1),
    ("shorter", 's == "abc"', 0),
    ("longer", 's == "abcde"', 0),
    ("beginning", 's ~ "abcd*"', 1),
    # The last byte of an array is skipped as if it were the NUL.
    ("end", 's ~ "*abc"', 1),
)
def test_string_filling_its_array(ue: UserEvents, text: str, count: int) -> None:
    """A string without a NUL ends with its array."""
    event = ue.event("char[4] s; u8 b", enabled=True)
    assert event.directory.set_filter(text).errno == ""
    assert event.write(b"abcde").value == 9
    if text.startswith('s ~ "*'):
        count = ue.bug("filter-end-pattern", fixed=0, present=1)
    if text.endswith('"abcde"'):
        count = ue.dated("whole_pattern_compared", since=count, before=1)
    assert ue.tracefs.records() == [ue.line("s=abcd", "b='e'(101)")] * count


@case(tier="full", switch="filter-digit-pattern")
@spec("trace_events_filter.c:filter_parse_regex, filter_build_regex")
def test_string_of_digits(ue: UserEvents) -> None:
    """A pattern that begins with a digit is a glob like any other."""
    event = ue.event("char[4] s", enabled=True)
    assert event.directory.set_filter('s ~ "1*"').errno == ""
    for text in (b"1\0\0\0", b"12\0\0", b"1*\0\0"):
        event.write(text)
    kept = ue.bug("filter-digit-pattern", fixed=["1", "12", "1*"], present=["1*"])
    assert ue.tracefs.records() == [ue.line(f"s={text}") for text in kept]


@case(spec="user_event_add_field: FILTER_OTHER", profiles="5.18..6.3")
@variants(
    ("char", "char[8] s", 's == "help"'),
    ("glob", "char[8] s", 's ~ "h*"'),
    ("data_loc", "__data_loc char[] s", 's != "help"'),
    ("rel_loc", "__rel_loc char[] s", 's == "help"'),
)
def test_string_before_6_4(ue: UserEvents, field: str, text: str) -> None:
    """Before 6.4 no field of a user event is typed as a string: EINVAL."""
    directory = ue.event(field).directory
    assert directory.set_filter(text).errno == "EINVAL"
    assert directory.filter.endswith("\nparse_error: Expecting numeric field\n\n")
