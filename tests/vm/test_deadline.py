"""Deadlines end, say what they waited for, and hand down no more than they have."""

from __future__ import annotations

import time

import pytest

from vm.deadline import Deadline
from vm.errors import NoAnswer


def test_check_says_what_was_waited_for_and_how_long() -> None:
    deadline = Deadline(0, "answer from actor 'a1'")
    assert deadline.expired
    with pytest.raises(NoAnswer, match="no answer from actor 'a1' within 0 s"):
        deadline.check()


def test_remaining_never_grows_and_never_is_negative() -> None:
    deadline = Deadline(0.02, "nothing")
    first = deadline.remaining()
    assert 0 < first <= 0.02
    time.sleep(0.03)
    assert deadline.remaining() == 0


def test_a_child_ends_no_later() -> None:
    assert Deadline(0.5, "all").child(60, "part").seconds <= 0.5
    assert Deadline(60, "all").child(0.5, "part").seconds == 0.5


def test_pause_is_bounded() -> None:
    began = time.monotonic()
    Deadline(60, "nothing").pause(30)
    assert time.monotonic() - began < 1


def test_pause_after_the_end_raises() -> None:
    with pytest.raises(NoAnswer):
        Deadline(0, "nothing").pause()
