"""Two cases that pass."""

from __future__ import annotations

from conformance.cases.case import case
from conformance.client.user_events import UserEvents

DOC = "nothing@all: any kernel does"


@case("drill.first", spec="nothing", doc=DOC)
def test_first(ue: UserEvents) -> None:
    """An event gets index 0."""
    assert ue.open_data().register(ue.name()).index == 0


@case("drill.second", spec="nothing", doc=DOC)
def test_second(ue: UserEvents) -> None:
    """So does another one for its own descriptor."""
    assert ue.open_data().register(ue.name("second")).index == 0
