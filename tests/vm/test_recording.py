"""The recording of a program: groups, details, and what cannot be decoded."""

from __future__ import annotations

import pytest

from vm.recorder.recording import (
    BadRecording,
    Call,
    Credentials,
    Enabled,
    Entry,
    Event,
    File,
    Memory,
    Page,
    Sample,
    groups,
)

CALL = "call 7 6 16 0 3 c0082a00 1000 0 0 0\n"
PATH = b"/sys/kernel/tracing/user_events_data".hex()


def test_a_call_has_what_was_read_before_and_after_it() -> None:
    lines = [
        CALL,
        f"file 3 {PATH}\n",
        "credentials 0 5 1ff 1\n",
        "memory 1000 4 1c000000\n",
        "rights 1000 rw-p\n",
        "exit 7 0\n",
        "memory 1000 8 00\n",
        "enable user_events 0\n",
        "event user_events 497 c3a9\n",
        "memory 2000 4 01000000\n",
        "page 1 00ff\n",
        "sample 0 9 -\n",
    ]
    (call,) = groups(lines)
    assert isinstance(call, Call)
    assert (call.tid, call.tgid, call.number, call.compat, call.result) == (7, 6, 16, False, 0)
    assert call.arguments == (3, 0xC0082A00, 0x1000, 0, 0, 0)
    assert call.before.files == [File(3, "/sys/kernel/tracing/user_events_data")]
    assert call.before.credentials == Credentials(0, 5, 0x1FF, in_user_namespace=True)
    assert call.before.memory == [Memory(0x1000, 4, b"\x1c\0\0\0")]
    assert call.before.rights == {0x1000: "rw-p"}
    # A read that reached one byte of eight.
    assert call.after.memory == [Memory(0x1000, 8, b"\0")]
    assert call.after.enabled == [Enabled("user_events", 0)]
    assert call.after.events == [Event("user_events", 497, "\xc3\xa9")]
    assert call.after.enabled_memory == [Memory(0x2000, 4, b"\1\0\0\0")]
    assert call.after.pages == [Page(1, b"\0\xff")]
    assert call.after.samples == [Sample(0, 9, b"")]


def test_a_call_stands_where_it_returned() -> None:
    other = "call 8 6 3 0 4 0 0 0 0 0\nexit 8 0\n".splitlines(keepends=True)
    found = list(groups([CALL, *other, "fork 8 9 9 11\n", "exit 7 -22\n"]))
    assert [each.tid if isinstance(each, Call) else each.kind for each in found] == [8, "fork", 7]
    assert found[1] == Entry("fork", (8, 9, 9, 0x11))


@pytest.mark.parametrize("end", [["end 7 9\n"], []])
def test_a_call_may_not_return(end: list[str]) -> None:
    call = next(groups([CALL, *end]))
    assert isinstance(call, Call)
    assert call.result is None


def test_the_end_of_a_guest_cuts_the_last_line() -> None:
    assert list(groups(["start 5\n", "memory 10"])) == [Entry("start", (5,))]


@pytest.mark.parametrize(
    "line",
    [
        *("exit 7 0", "call 7 6 16 0 3", "memory 1000", "memory 1000 4 0"),
        *("start x", "surprise 1", "page 0"),
    ],
)
def test_a_line_that_no_recorder_writes_is_named(line: str) -> None:
    with pytest.raises(BadRecording, match="line 2 of the recording"):
        list(groups(["start 5\n", f"{line}\n"]))
