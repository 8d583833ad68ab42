"""Waits in vain shorten later ones."""

from __future__ import annotations

from conformance.client.executor import Deadline
from conformance.runner.patience import Patience
from host import deadline


class Clock:
    def __init__(self) -> None:
        self.given: list[float] = []

    def deadline(self, seconds: float, what: str) -> Deadline:
        self.given.append(seconds)
        return deadline.Deadline(0, what)


def test_waits_in_vain_shorten_later_ones() -> None:
    patience, clock = Patience(), Clock()
    pending = patience.deadline(clock, 5, "an event")
    assert pending.remaining() == 0
    for _ in range(6):
        assert patience.deadline(clock, 5, "an event").expired
    patience.deadline(clock, 5, "an event")
    assert clock.given == [5, 5, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1]
