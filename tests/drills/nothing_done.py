"""A case without operations."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents

case = surface("drill", level="contract")


@case
def test_nothing(ue: UserEvents) -> None:
    """Nothing is performed."""
    assert ue
