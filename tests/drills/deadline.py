"""A case that does not begin before the deadline of its run."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents

case = surface("drill", level="contract")


@case
def test_late(ue: UserEvents) -> None:
    """Passes."""
    assert ue.open_data().register(ue.name()).index == 0
