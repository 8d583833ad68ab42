"""Waits in vain shorten later ones."""

from __future__ import annotations

import os

from conformance.client.executor import Deadline
from conformance.runner.patience import Patience
from host import deadline
from host.shared_count import SharedCount


class Clock:
    def __init__(self, speed: float = 0) -> None:
        self.given: list[float] = []
        self.speed = speed

    def deadline(self, seconds: float, what: str) -> Deadline:
        self.given.append(seconds)
        return deadline.Deadline(seconds * self.speed, what)


def test_waits_in_vain_shorten_later_ones() -> None:
    patience, clock = Patience(), Clock()
    pending = patience.deadline(clock, 5, "an event")
    assert pending.remaining() == 0
    for _ in range(6):
        assert patience.deadline(clock, 5, "an event").expired
    patience.deadline(clock, 5, "an event")
    assert clock.given == [5, 5, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1]


def test_a_wait_in_vain_shortens_those_of_other_processes_that_have_begun() -> None:
    in_vain = SharedCount()
    patience, clock = Patience(in_vain), Clock(speed=100)
    pending = patience.deadline(clock, 5, "an event")
    assert 499 < pending.remaining() <= 500
    if (pid := os.fork()) == 0:
        Patience(in_vain).lose()
        os._exit(0)
    os.waitpid(pid, 0)
    assert 49 < pending.remaining() <= 50
    assert not pending.expired
    assert 49 < patience.deadline(clock, 5, "an event").remaining() <= 50
