"""Pooled processes are reset in few requests, and killed if that fails."""

from __future__ import annotations

from collections.abc import Sequence
from errno import EBADF, EFAULT
from typing import Any

import pytest

from conformance import ops
from conformance.ops.calls import Call
from conformance.runner.process_pool import PooledProcess, ProcessPool

LOOK = ["slurp", "/proc/sys/kernel/tainted", 64]
CLOSE, IOCTL = 3, 16


class Asked:
    """A channel that records its requests; system calls of some numbers fail."""

    def __init__(self, failing: dict[object, int] | None = None) -> None:
        self.requests: list[tuple[str, list[Call]]] = []
        self._failing = failing or {}

    def call(self, actor: str, calls: Sequence[Call]) -> list[dict[str, Any]]:
        self.requests.append((actor, list(calls)))
        return [{"errno": self._failing.get(call[1], 0), "of": call} for call in calls]


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
    results = pool.give_back([(first, ()), (PooledProcess("root"), ()), (spoilt, ())], [LOOK])
    assert [result["of"] for result in results] == [LOOK]
    assert channel.requests == [
        ("", [["kill", spoilt.name, 9]]),
        (first.name, [["sys", CLOSE, [{"fd": 3}], None], LOOK]),
    ]
    assert pool.borrow("p").name == first.name


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
    assert pool.give_back([(process, ()) for process in used], [LOOK]) == []
    assert all(LOOK not in calls for _, calls in channel.requests)


@pytest.mark.parametrize(("failing", "kept"), [({IOCTL: EFAULT}, True), ({CLOSE: EBADF}, False)])
def test_process_is_killed_only_if_its_reset_fails(failing: dict[object, int], kept: bool) -> None:
    channel = Asked(failing)
    pool = ProcessPool(channel, standing="root")
    process = borrowed(pool)
    results = pool.give_back([(process, [(4096, 0)])], [LOOK])
    assert bool(results) is kept
    assert (("", [["kill", process.name, 9]]) in channel.requests) is not kept
