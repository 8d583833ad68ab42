"""Deadlines expire, name what was awaited, and have no children that outlive them."""

from __future__ import annotations

import time

import pytest

from host.deadline import Deadline
from host.errors import DeadlineExpired


def test_check_names_what_was_awaited_and_the_limit() -> None:
    deadline = Deadline(0, "answer from actor 'a1'", "2 s on an idle machine")
    assert deadline.expired
    expected = r"no answer from actor 'a1' within 0 s \(2 s on an idle machine\)"
    with pytest.raises(DeadlineExpired, match=expected):
        deadline.check()


def test_remaining_time_shrinks_to_zero() -> None:
    began = time.monotonic()
    assert 0 < Deadline(60, "nothing", started=began - 20).remaining() <= 40
    assert Deadline(60, "nothing", started=began - 61).remaining() == 0


def test_child_ends_no_later_than_its_parent() -> None:
    assert Deadline(0.5, "all").child(60, "part").seconds <= 0.5
    assert Deadline(60, "all").child(0.5, "part").seconds == 0.5


def test_pause_is_short() -> None:
    deadline = Deadline(60, "nothing")
    deadline.pause(30)
    assert deadline.elapsed < 1


def test_pause_after_the_end_raises() -> None:
    with pytest.raises(DeadlineExpired):
        Deadline(0, "nothing").pause()
