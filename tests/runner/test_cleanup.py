"""What a guest is put in order with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

from conformance.client import tracefs
from conformance.ops.encode.requests import Call, path_in
from conformance.runner.cleanup import Janitor, _name_in, _others_in, _used_in, removal_of
from tests.runner.test_runner import Guest


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
    assert _others_in(f"{text}s:synthetic/m\tu32 a\n") == ["uevt/p", "synthetic/m"]


def test_synthetic_events_are_removed() -> None:
    calls = repairs({tracefs.DYNAMIC_EVENTS: "s:synthetic/m\tu32 a\n"})
    assert [(call[1], bytes.fromhex(str(call[2]))) for call in calls] == [
        (f"{tracefs.ROOT}/events/synthetic/m/enable", b"0"),
        (tracefs.DYNAMIC_EVENTS, b"-:synthetic/m"),
    ]


class Left(Guest):
    """A guest in which some files, and directories, have something in them."""

    def __init__(self, texts: dict[str, str]) -> None:
        super().__init__({})
        self.texts = texts
        self.calls: list[Call] = []

    def call(
        self, actor: str, calls: Sequence[Call], watch: Sequence[tuple[str, int, int]] = ()
    ) -> list[dict[str, Any]]:
        self.calls += calls
        return super().call(actor, calls, watch)

    def _result(self, call: Call) -> dict[str, Any]:
        result = super()._result(call)
        if call[0] in ("slurp", "list") and call[1] in self.texts:
            result["data"] = self.texts[str(call[1])].encode().hex()
        return result


def repairs(texts: dict[str, str]) -> list[Call]:
    """What a janitor does about it, beside looking."""
    guest = Left(texts)
    janitor = Janitor(guest)
    guest.calls.clear()
    assert janitor.tidy() is False
    return [call for call in guest.calls if call[0] not in ("slurp", "list")]


def test_instances_are_removed() -> None:
    calls = repairs({f"{tracefs.ROOT}/instances": "a\nb\n"})
    assert [call[2] for call in calls] == [
        [path_in(f"{tracefs.ROOT}/instances/{name}")] for name in ("a", "b")
    ]
    assert {call[1] for call in calls} == {84}


@pytest.mark.parametrize("file", ["set_event_pid", "set_event_notrace_pid"])
def test_lists_of_processes_are_emptied(file: str) -> None:
    path = f"{tracefs.ROOT}/{file}"
    assert repairs({path: "77\n"}) == [["spill", path, "0a", os.O_WRONLY | os.O_TRUNC]]


@pytest.mark.parametrize("left", [True, False])
def test_triggers_are_looked_for_where_some_were_left(left: bool) -> None:
    guest = Left({tracefs.STATUS: "e # Used by ftrace\n"})
    janitor = Janitor(guest)
    guest.calls.clear()
    janitor.repairs(triggers=left)
    trigger = f"{tracefs.ROOT}/events/user_events/e/trigger"
    assert any(call[1] == trigger for call in guest.calls) is left


def test_a_guest_in_order_is_left_alone() -> None:
    assert Janitor(Left({})).tidy() is True
