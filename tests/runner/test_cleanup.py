"""The calls that restore a guest, by what a case left and what the files of the guest show.

tests/drills/leaves_everything.py has what they restore, in a guest.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.client import tracefs
from conformance.ops.calls import Call
from conformance.runner.cleanup import Cleanup, _event_name, removal_of
from conformance.runner.guest_invariants import GuestInvariants
from conformance.runner.leftovers import SETTINGS, Leftovers
from conformance.runner.patience import Patience
from tests.runner.fake_guest import Guest

EVENTS = f"{tracefs.ROOT}/events"


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
def test_name_of_a_definition(line: str, name: str) -> None:
    assert _event_name(line) == name


@pytest.mark.parametrize(
    ("line", "removed"),
    [
        ("traceon:unlimited", "traceon"),
        ("snapshot:count=3 if a == 1", "snapshot"),
        ("enable_event:user_events:e:unlimited", "enable_event:user_events:e"),
        ("disable_event:task:task_newtask:count=0 if a == 1", "disable_event:task:task_newtask"),
        (
            "hist:keys=a:vals=hitcount:sort=hitcount:size=2048 if a == 1 [paused]",
            "hist:keys=a:vals=hitcount:sort=hitcount:size=2048 if a == 1",
        ),
    ],
)
def test_name_of_a_trigger(line: str, removed: str) -> None:
    assert removal_of(line) == removed


def cleaning(guest: Guest) -> Cleanup:
    return Cleanup(guest, GuestInvariants(guest), Patience())


def restoring(texts: dict[str, str], left: Leftovers) -> list[Call]:
    """The calls of a cleanup that do more than read."""
    guest = Guest(texts=texts)
    cleanup = cleaning(guest)
    guest.calls.clear()
    cleanup.restore(left, [])
    return [call for call in guest.calls if call[0] not in ("slurp", "list")]


def written(calls: Sequence[Call]) -> list[tuple[str, bytes]]:
    """Paths and texts of the writes among calls."""
    return [(str(call[1]), bytes.fromhex(str(call[2]))) for call in calls if call[0] == "spill"]


OBJECTS = Leftovers(objects=True)


def test_probes_are_removed_first_and_eprobes_before_other_probes() -> None:
    """Disabled everywhere; to remove an eprobe of a freed event is a use after free."""
    definitions = "u:a u32 x\np:uevt/k user_events_write\ne:uevt/p user_events.a x=$x\n"
    texts = {tracefs.DYNAMIC_EVENTS: definitions, f"{tracefs.ROOT}/instances": "i\n"}
    events = (EVENTS, f"{tracefs.ROOT}/instances/i/events")
    expected = [
        *((f"{place}/uevt/{name}/enable", b"0") for name in "pk" for place in events),
        (tracefs.DYNAMIC_EVENTS, b"-:uevt/p"),
        (tracefs.DYNAMIC_EVENTS, b"-:uevt/k"),
    ]
    assert written(restoring(texts, OBJECTS)[: len(expected)]) == expected
    guest = Guest(texts=texts)
    cleanup = cleaning(guest)
    guest.calls.clear()
    assert cleanup.detach(Leftovers(objects=True, eprobes=True)) == OBJECTS
    assert written(guest.calls) == expected


def test_what_a_program_wrote_is_restored_without_reading() -> None:
    cpumask, system = f"{tracefs.ROOT}/tracing_cpumask", f"{EVENTS}/user_events/filter"
    assert cpumask in SETTINGS
    left = Leftovers(
        settings=(cpumask,), filters=(system,), kernel_events=True, errors=True, records=True
    )
    guest = Guest(texts={cpumask: "3\n"})
    cleanup = cleaning(guest)
    guest.calls.clear()
    cleanup.restore(left, [])
    assert written(guest.calls) == [
        (cpumask, b"3\n"),
        (system, b"0"),
        (f"{tracefs.ROOT}/set_event", b"\n"),
        (tracefs.ERROR_LOG, b"\n"),
        (tracefs.TRACE, b""),
    ]
    assert len(guest.calls) == 5


EVENTS_LEFT = {tracefs.DYNAMIC_EVENTS: "u:lasting u32 a\nu:other\n"}


def deleted(calls: Sequence[Call]) -> list[bytes]:
    """The names of events that DIAG_IOCSDEL deletes."""
    return [bytes.fromhex(str(call[2])).rstrip(b"\0") for call in calls if call[0] == "poke"]


@pytest.mark.parametrize(
    ("events", "gone"), [((), []), (("lasting",), [b"lasting"]), (None, [b"lasting", b"other"])]
)
def test_only_events_that_persist_are_deleted(
    events: tuple[str, ...] | None, gone: list[bytes]
) -> None:
    """The kernel has to remove others; after a deviation it is unknown which those are."""
    left = Leftovers(objects=True, events=events)
    assert deleted(restoring(EVENTS_LEFT, left)) == gone


def test_events_that_persist_are_deleted_until_they_are_gone() -> None:
    guest = Guest(texts=EVENTS_LEFT)
    cleanup = cleaning(guest)
    cleanup.restore(Leftovers(objects=True, events=("lasting",)), [])
    guest.calls.clear()
    assert cleanup.wait_until_clean(1) == ["u:lasting u32 a", "u:other"]
    assert deleted(guest.calls) == [b"lasting"] * 3
    del guest.texts[tracefs.DYNAMIC_EVENTS]
    assert cleanup.wait_until_clean(1) == []
    guest.texts.update(EVENTS_LEFT)
    guest.calls.clear()
    # An event of that name is another one now.
    cleanup.tidy()
    assert deleted(guest.calls) == []


def test_clean_guest_is_left_alone() -> None:
    guest = Guest()
    assert cleaning(guest).tidy() == []
    assert restoring({}, OBJECTS) == []
