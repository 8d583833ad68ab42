"""Cases that provoke kernel reports after their end."""

from __future__ import annotations

import time

import pytest

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents
from tests.drills import provoke
from tests.drills.provoke import behind

case = surface("drill", level="contract")
# Seconds until the report has appeared, on a busy machine.
_LATER = 1.5


def put_off(ue: UserEvents) -> None:
    """Make a kernel worker report in 0.3 s."""
    assert ue.open_data().register(ue.name()).index == 0
    channel = behind(ue)
    channel.call("", [["spawn", provoke.ACTOR]])
    assert provoke.provoke(channel, "warn_later") == 0


@pytest.fixture
def pause() -> None:
    """Delay before a case begins."""
    time.sleep(_LATER)


@case
def test_first(ue: UserEvents) -> None:
    """The report comes between this case and the next."""
    put_off(ue)


@case
def test_second(pause: None, ue: UserEvents) -> None:
    """Nothing happens."""
    assert ue.open_data().register(ue.name()).index == 0


@case
def test_third(ue: UserEvents) -> None:
    """The report comes during the next case."""
    put_off(ue)


@case
def test_fourth(ue: UserEvents) -> None:
    """Nothing happens, slowly."""
    assert ue.open_data().register(ue.name()).index == 0
    time.sleep(_LATER)
