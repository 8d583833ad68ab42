"""What a program may have left, by its operations and the state of the model."""

from __future__ import annotations

import os

import pytest

from conformance import ops
from conformance.abi.profile import profile_for
from conformance.abi.uapi import USER_EVENT_REG_PERSIST
from conformance.client import tracefs
from conformance.model.state.world import World
from conformance.ops import credentials, race
from conformance.ops.credentials import MS_BIND, MS_RDONLY, MS_REMOUNT
from conformance.runner.leftovers import Leftovers, of_program

ROOT = tracefs.ROOT
TRIGGER = f"{ROOT}/events/user_events/e/trigger"
CPUMASK = f"{ROOT}/tracing_cpumask"
SYSTEM_FILTER = f"{ROOT}/events/user_events/filter"
KERNEL_FILTER = f"{ROOT}/events/sched/sched_switch/filter"


def fresh() -> World:
    return World.fresh(profile_for("6.12.117"))


def write(path: str) -> ops.WriteFile:
    return ops.WriteFile("p1", path, b"1", os.O_WRONLY)


def mount(flags: int = 0, kind: str = "") -> credentials.Mount:
    return credentials.Mount("p1", "none", "/run", kind, flags)


@pytest.mark.parametrize(
    ("operations", "left"),
    [
        ([], Leftovers()),
        ([write(tracefs.DYNAMIC_EVENTS)], Leftovers()),
        ([write(CPUMASK)], Leftovers(settings=(CPUMASK,))),
        ([write("/sys/kernel/debug/tracing/tracing_cpumask")], Leftovers(settings=(CPUMASK,))),
        ([ops.Open("p1", 3, CPUMASK, os.O_RDWR)], Leftovers(settings=(CPUMASK,))),
        ([ops.Open("p1", 3, CPUMASK, os.O_RDONLY)], Leftovers()),
        ([write(SYSTEM_FILTER)], Leftovers(filters=(SYSTEM_FILTER,))),
        ([write(KERNEL_FILTER)], Leftovers(filters=(KERNEL_FILTER,))),
        ([write(f"{ROOT}/events/user_events/e/filter")], Leftovers()),
        # The model has no trigger any more.
        ([write(TRIGGER)], Leftovers()),
        ([ops.Chmod("p1", tracefs.DATA, 0o666)], Leftovers(modes=True)),
        ([mount(MS_REMOUNT | MS_RDONLY)], Leftovers(modes=True, superblock=True)),
        ([mount(MS_REMOUNT | MS_BIND)], Leftovers()),
        ([mount(kind="tmpfs")], Leftovers()),
        ([mount(kind="tracefs")], Leftovers(modes=True, superblock=True)),
        (
            [race.Race("p1", (race.Track("p1", (ops.Open("p1", 3, CPUMASK, os.O_RDWR),)),))],
            Leftovers(settings=(CPUMASK,)),
        ),
    ],
    ids=str,
)
def test_operations_that_leave_something(operations: list[ops.Operation], left: Leftovers) -> None:
    found = of_program(operations, fresh())
    assert found == left
    assert bool(found) is (left != Leftovers())


def test_state_of_the_model_that_is_left() -> None:
    world = fresh()
    world.top.tracing_on = False
    world.top.error_log = ["a"]
    world.kernel_enabled.add("sched:sched_switch")
    expected = Leftovers(objects=True, errors=True, kernel_events=True)
    assert of_program([], world) == expected


def test_events_that_stay_until_they_are_deleted_are_named() -> None:
    world = fresh()
    for name, flags in (("gone", 0), ("kept", USER_EVENT_REG_PERSIST)):
        world.table.register(name, flags, capable=True)
    assert of_program([], world) == Leftovers(objects=True, events=("kept",))


def test_trigger_files_come_last_written_first() -> None:
    other = TRIGGER.replace("/e/", "/f/")
    program = [write(other), write(TRIGGER), write(other)]
    assert of_program(program, None).triggers == (other, TRIGGER)


def test_after_a_deviation_from_the_model_anything_may_be_left() -> None:
    left = of_program([], None)
    assert left == Leftovers(
        objects=True, eprobes=True, events=None, records=True, errors=True, kernel_events=True
    )
