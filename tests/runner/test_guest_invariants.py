"""Changed invariants are found, and named."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from conformance import ops
from conformance.client import tracefs
from conformance.runner.guest_invariants import Change, GuestInvariants
from conformance.runner.guest_setup import ACTOR
from tests.runner.fake_guest import Guest

PATH = f"{tracefs.ROOT}/events/user_events/e/enable"


TAINTED = "/proc/sys/kernel/tainted"


@pytest.fixture
def guest() -> Guest:
    return Guest(texts={tracefs.DATA: "100640 0:0", TAINTED: "0"})


def changed(
    around: GuestInvariants, guest: Guest, program: Sequence[ops.Operation], *, passed: bool
) -> list[Change]:
    """The changes after a program."""
    return around.changed(guest.call(ACTOR, around.calls(program, passed=passed)))


@pytest.mark.parametrize("status", ["100666 0:0", "100640 7:8"])
def test_changed_mode_or_owner_is_found(guest: Guest, status: str) -> None:
    around = GuestInvariants(guest)
    assert changed(around, guest, [], passed=False) == []
    guest.texts[tracefs.DATA] = status
    what = f"the mode of {tracefs.DATA}"
    expected = [Change(what, "'100640 0:0'", f"'{status}'", by_kernel=True)]
    assert changed(around, guest, [], passed=False) == expected
    around.accept()
    assert changed(around, guest, [], passed=False) == []


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (ops.Open("p1", 3, tracefs.DATA, os.O_RDWR), False),
        (ops.Open("p1", 3, tracefs.TRACING_ON, os.O_RDONLY), False),
        (ops.WriteFile("p1", PATH, b"1", os.O_WRONLY), False),
        (ops.WriteFile("p1", tracefs.DYNAMIC_EVENTS, b"u:e", os.O_WRONLY), False),
        (ops.WriteFile("p1", tracefs.TRACING_ON, b"1", os.O_WRONLY), True),
        (ops.Open("p1", 3, tracefs.TRACING_ON, os.O_RDWR), True),
        (ops.WriteFile("p1", f"{tracefs.ROOT}/events/enable", b"0", os.O_WRONLY), True),
        (ops.MakeDirectory("p1", "/d"), True),
        (ops.Chmod("p1", tracefs.DATA, 0o666), True),
    ],
    ids=str,
)
def test_invariants_are_read_after_shared_writes(
    guest: Guest, operation: ops.Operation, expected: bool
) -> None:
    around = GuestInvariants(guest)
    guest.texts[tracefs.DATA] = "100666 0:0"
    assert bool(changed(around, guest, [operation], passed=True)) is expected


def test_taint_is_always_read(guest: Guest) -> None:
    around = GuestInvariants(guest)
    guest.texts[TAINTED] = "512"
    expected = [Change(TAINTED, "'0'", "'512'", by_kernel=False)]
    assert changed(around, guest, [], passed=True) == expected


def test_new_guest_has_an_expanded_buffer(guest: Guest) -> None:
    GuestInvariants(guest)
    writes = [call[2] for call in guest.calls if call[:2] == ["spill", f"{tracefs.ROOT}/set_event"]]
    assert writes == ["0a"]
