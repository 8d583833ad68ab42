"""Two cases that pass."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents

case = surface("drill", level="contract")


@case
def test_first(ue: UserEvents) -> None:
    """An event gets index 0."""
    assert ue.open_data().register(ue.name()).index == 0


@case
def test_second(ue: UserEvents) -> None:
    """An event of another descriptor gets index 0."""
    assert ue.open_data().register(ue.name("second")).index == 0
