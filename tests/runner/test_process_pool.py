"""Processes that programs borrow are taken back in few requests, and none that is spoilt."""

from __future__ import annotations

from collections.abc import Sequence
from errno import EBADF, EFAULT
from typing import Any

import pytest

from conformance.ops import syscalls as op
from conformance.ops.encode.requests import Call
from conformance.runner.process_pool import Crew, Hand

LOOK = ["slurp", "/proc/sys/kernel/tainted", 64]
CLOSE, IOCTL = 3, 16


class Asked:
    """A channel that notes what is asked of whom; system calls of some numbers fail."""

    def __init__(self, failing: dict[object, int] | None = None) -> None:
        self.requests: list[tuple[str, list[Call]]] = []
        self._failing = failing or {}

    def call(self, actor: str, calls: Sequence[Call]) -> list[dict[str, Any]]:
        self.requests.append((actor, list(calls)))
        return [{"errno": self._failing.get(call[1], 0), "of": call} for call in calls]


def borrowed(crew: Crew, *, reusable: bool = True) -> Hand:
    """A process with a descriptor that is open."""
    hand = crew.enlist("p")
    hand.note(op.Open("p", 3, "/x", 0), ok=True)
    hand.reusable = reusable
    return hand


def test_who_is_put_in_order_does_the_rest_in_the_same_request() -> None:
    channel = Asked()
    crew = Crew(channel, standing="root")
    first, spoilt = borrowed(crew), borrowed(crew, reusable=False)
    channel.requests.clear()
    results = crew.dismiss([(first, ()), (Hand("root"), ()), (spoilt, ())], [LOOK])
    assert [result["of"] for result in results] == [LOOK]
    assert channel.requests == [
        ("", [["kill", spoilt.name, 9]]),
        (first.name, [["sys", CLOSE, [{"fd": 3}], None], LOOK]),
    ]
    assert crew.enlist("p").name == first.name


@pytest.mark.parametrize("hands", ["none", "standing", "spoilt"])
def test_nobody_is_left_to_do_the_rest(hands: str) -> None:
    channel = Asked()
    crew = Crew(channel, standing="root")
    used = {
        "none": [],
        "standing": [Hand("root")],
        "spoilt": [borrowed(crew, reusable=False)],
    }[hands]
    channel.requests.clear()
    assert crew.dismiss([(hand, ()) for hand in used], [LOOK]) == []
    assert all(LOOK not in calls for _, calls in channel.requests)


@pytest.mark.parametrize(("failing", "kept"), [({IOCTL: EFAULT}, True), ({CLOSE: EBADF}, False)])
def test_only_what_cannot_be_put_back_costs_a_process(
    failing: dict[object, int], kept: bool
) -> None:
    channel = Asked(failing)
    crew = Crew(channel, standing="root")
    hand = borrowed(crew)
    results = crew.dismiss([(hand, [(4096, 0)])], [LOOK])
    assert bool(results) is kept
    assert (("", [["kill", hand.name, 9]]) in channel.requests) is not kept
