"""Events of other programs, taken out of what the suite reads."""

from __future__ import annotations

import pytest

from conformance.session.here.foreign_events import event_of, without_events

DYNAMIC = "u:mine u32 a\nu:theirs char[4] b\np:kprobes/x do_exit\n"
STATUS = "mine\ntheirs # Used by ftrace\n\nActive: 2\nBusy: 1\n"
STATUS_6_1 = "1:mine\n2:theirs # Used by perf\n\nActive: 2\nBusy: 1\nMax: 32768\n"


@pytest.mark.parametrize(
    ("shown", "hidden"),
    [
        (DYNAMIC, "u:mine u32 a\np:kprobes/x do_exit\n"),
        (STATUS, "mine\n\nActive: 1\nBusy: 0\n"),
        (STATUS_6_1, "1:mine\n\nActive: 1\nBusy: 0\nMax: 32768\n"),
        ("", ""),
    ],
)
def test_hides_them_and_their_totals(shown: str, hidden: str) -> None:
    assert without_events(shown, {"theirs"}) == hidden
    assert without_events(shown, set()) == shown


@pytest.mark.parametrize(
    ("line", "name"),
    [("u:a u8 b", "a"), ("u:a", "a"), ("3:a # Used by ftrace", "a"), ("a", "a"), ("Busy: 1", "")],
)
def test_names_an_event(line: str, name: str) -> None:
    assert event_of(line) == name
