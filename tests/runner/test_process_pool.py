"""Pooled processes are reset in few requests, and killed if that fails."""

from __future__ import annotations

from collections.abc import Sequence
from errno import EBADF, EFAULT, EINVAL, ENOENT
from pathlib import Path
from typing import Any

import pytest

from conformance import ops
from conformance.ops.calls import Call
from conformance.runner.process_pool import MOST_ACTORS, Enablers, PooledProcess, ProcessPool
from vm.qemu.command_line import MachineSpec

LOOK = ["slurp", "/proc/sys/kernel/tainted", 64]
CLOSE, IOCTL = 3, 16


class Asked:
    """A channel that records its requests; system calls of some numbers fail."""

    def __init__(self, failing: dict[object, int] | None = None) -> None:
        self.requests: list[tuple[str, list[Call]]] = []
        self._failing = failing or {}

    def call(self, actor: str, calls: Sequence[Call]) -> list[dict[str, Any]]:
        self.requests.append((actor, list(calls)))
        return [
            {"errno": self._failing.get(call[1], 0), "of": call, "data": "00"} for call in calls
        ]


def borrowed(pool: ProcessPool, *, reusable: bool = True) -> PooledProcess:
    """A process with an open descriptor."""
    process = pool.borrow("p")
    process.note(ops.Open("p", 3, "/x", 0), ok=True)
    process.reusable = reusable
    return process


def test_last_kept_process_performs_further_calls() -> None:
    channel = Asked()
    pool = ProcessPool(channel, standing="root")
    first, spoilt = borrowed(pool), borrowed(pool, reusable=False)
    channel.requests.clear()
    used = [(each, Enablers()) for each in (first, PooledProcess("root"), spoilt)]
    results = pool.give_back(used, [LOOK]).results
    assert [result["of"] for result in results] == [LOOK]
    assert channel.requests == [
        ("", [["kill", spoilt.name, 9]]),
        (first.name, [["sys", CLOSE, [{"fd": 3}], None], LOOK]),
    ]
    assert pool.borrow("p").name == first.name


def test_an_idle_process_ends_if_all_ports_are_taken() -> None:
    assert MachineSpec(Path()).actors == MOST_ACTORS
    channel = Asked()
    pool = ProcessPool(channel, standing="root")
    idle = [pool.borrow("p") for _ in range(4)]
    pool.give_back([(each, Enablers()) for each in idle])
    channel.requests.clear()
    parent = pool.borrow("p")
    # With the standing process, the parent and three idle ones there are three ports left.
    for _ in range(3):
        pool.child(parent)
    assert channel.requests == []
    pool.child(parent)
    assert channel.requests == [("", [["kill", idle[0].name, 9]])]


@pytest.mark.parametrize("kind", ["none", "standing", "spoilt"])
def test_further_calls_are_left_undone_without_a_kept_process(kind: str) -> None:
    channel = Asked()
    pool = ProcessPool(channel, standing="root")
    used = {
        "none": [],
        "standing": [PooledProcess("root")],
        "spoilt": [borrowed(pool, reusable=False)],
    }[kind]
    channel.requests.clear()
    assert pool.give_back([(each, Enablers()) for each in used], [LOOK]).results == []
    assert all(LOOK not in calls for _, calls in channel.requests)


@pytest.mark.parametrize(("failing", "kept"), [({IOCTL: EFAULT}, True), ({CLOSE: EBADF}, False)])
def test_process_is_killed_only_if_its_reset_fails(failing: dict[object, int], kept: bool) -> None:
    channel = Asked(failing)
    pool = ProcessPool(channel, standing="root")
    process = borrowed(pool)
    returned = pool.give_back([(process, Enablers(((4096, 0),)))], [LOOK])
    assert bool(returned.results) is kept
    assert (("", [["kill", process.name, 9]]) in channel.requests) is not kept


class Registered:
    """A channel of a process with enablers: the errors of each unregistration, the byte after."""

    def __init__(self, errors: Sequence[int], byte: int = 0) -> None:
        self._errors = iter(errors)
        self._byte = byte
        self.killed = 0

    def call(self, actor: str, calls: Sequence[Call]) -> list[dict[str, Any]]:
        self.killed += [call[0] for call in calls].count("kill")
        return [
            {"errno": next(self._errors) if call[1] == IOCTL else 0, "data": f"{self._byte:02x}"}
            for call in calls
        ]


BIT_9 = Enablers(((4096, 9),))


@pytest.mark.parametrize(
    ("errors", "byte", "wrong"),
    [
        ((0, ENOENT), 0, ""),
        ((0, ENOENT), 0b101, ""),
        ((EFAULT, ENOENT), 0b10, ""),
        ((ENOENT, ENOENT), 0, "unregistering its enabler gave ENOENT"),
        ((EINVAL, ENOENT), 0, "unregistering its enabler gave EINVAL"),
        ((0, 0), 0, "an enabler is left after it was unregistered"),
        ((0, ENOENT), 0b10, "still set after its enabler was unregistered"),
    ],
)
@pytest.mark.parametrize("forked", [False, True])
def test_enablers_are_as_the_model_has_them(
    errors: tuple[int, int], byte: int, wrong: str, forked: bool
) -> None:
    channel = Registered(errors, byte)
    pool = ProcessPool(channel, standing="root")
    process = pool.borrow("p")
    if forked:
        process = pool.child(process)
    found = pool.give_back([(process, BIT_9)]).wrong
    assert found == ((f"bit 9 of 0x1000: {wrong}",) if wrong else ())
    assert channel.killed == forked


def test_enablers_under_a_fault_are_not_judged() -> None:
    pool = ProcessPool(Registered((0, 0)), standing="root")
    unsettled = Enablers(BIT_9.places, settled=False)
    assert pool.give_back([(pool.borrow("p"), unsettled)]).wrong == ()


def test_process_that_was_changed_for_good_is_only_killed() -> None:
    channel = Registered(())
    pool = ProcessPool(channel, standing="root")
    process = pool.borrow("p")
    process.note(ops.Setuid("p", 1000), ok=True)
    child = pool.child(process)
    assert pool.give_back([(process, BIT_9), (child, BIT_9)]).wrong == ()
    assert channel.killed == 2
