"""A case that is not begun: its run is over before."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents

case = surface("drill")


@case
def test_late(ue: UserEvents) -> None:
    """What would pass."""
    assert ue.open_data().register(ue.name()).index == 0
