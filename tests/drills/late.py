"""Cases after whose end the kernel complains of what they had it do.

Run with --module and the module of tests.drills.provoke.
"""

from __future__ import annotations

import time

import pytest

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents
from tests.drills import provoke
from tests.drills.provoke import behind

case = surface("drill")
# Seconds after which it does it for certain, on a machine that has other things to do.
_LATER = 1.5


def put_off(ue: UserEvents) -> None:
    """Have a worker of the kernel's complain in 0.3 s."""
    assert ue.open_data().register(ue.name()).index == 0
    channel = behind(ue)
    channel.call("", [["spawn", provoke.ACTOR]])
    assert provoke.provoke(channel, "warn_later") == 0


@pytest.fixture
def pause() -> None:
    """Time that passes before a case begins."""
    time.sleep(_LATER)


@case
def test_first(ue: UserEvents) -> None:
    """It has ended when the kernel complains, and no other has begun."""
    put_off(ue)


@case
def test_second(pause: None, ue: UserEvents) -> None:
    """All is as it should be."""
    assert ue.open_data().register(ue.name()).index == 0


@case
def test_third(ue: UserEvents) -> None:
    """It has ended when the kernel complains, in the time of the next."""
    put_off(ue)


@case
def test_fourth(ue: UserEvents) -> None:
    """All is as it should be, and takes its time."""
    assert ue.open_data().register(ue.name()).index == 0
    time.sleep(_LATER)
