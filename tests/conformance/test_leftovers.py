"""What a guest is put in order with."""

from __future__ import annotations

import pytest

from conformance.leftovers import _eprobes_in, _name_in, _used_in, removal_of


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("u:test", "test"),
        ("u:test u32 a; char[4] b", "test"),
        ("u: u32 a", ""),
        ("ue:test", "test"),
        ("ue:test;u32 a;u8 b", "test"),
        ("ue:test;u8 b (Used by ftrace)", "test"),
        ("ue:test (Used by ftrace perf other)", "test"),
        ("ue:test (Used by)", "test"),
        ("ue: test u32 a", " test u32 a"),
        ("ue:test (Used by me) (Used by perf)", "test (Used by me)"),
        ("ue:", ""),
    ],
)
def test_the_name_of_a_definition(line: str, name: str) -> None:
    assert _name_in(line) == name


@pytest.mark.parametrize(
    ("line", "removed"),
    [
        ("traceon:unlimited", "traceon"),
        ("snapshot:count=3 if a == 1", "snapshot"),
        ("enable_event:user_events:e:unlimited", "enable_event:user_events:e"),
        (
            "disable_event:task:task_newtask:count=0 if a == 1",
            "disable_event:task:task_newtask",
        ),
        (
            "hist:keys=a:vals=hitcount:sort=hitcount:size=2048 if a == 1 [paused]",
            "hist:keys=a:vals=hitcount:sort=hitcount:size=2048 if a == 1",
        ),
    ],
)
def test_what_a_trigger_is_removed_by(line: str, removed: str) -> None:
    assert removal_of(line) == removed


@pytest.mark.parametrize(
    ("status", "names"),
    [
        ("a\nb # Used by ftrace\nc.1f # Used by ftrace perf\n", ["b", "c.1f"]),
        ("1:a # Used by ftrace\n2:b\n\nActive: 2\nBusy: 1\nMax: 32768\n", ["a"]),
        ("\nActive: 0\nBusy: 0\n", []),
    ],
)
def test_events_in_use(status: str, names: list[str]) -> None:
    assert _used_in(status) == names


def test_probes_among_definitions() -> None:
    text = "u:a u32 a\ne:uevt/p user_events.a a=$a\np:uevt/k user_events_write\n"
    assert _eprobes_in(text) == ["uevt/p"]
