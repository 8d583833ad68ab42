"""A case whose worker dies, and one that passes."""

from __future__ import annotations

import os
import signal

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents

case = surface("drill", level="contract")


@case
def test_first(ue: UserEvents) -> None:
    """An event gets index 0."""
    assert ue.open_data().register(ue.name()).index == 0


@case
def test_dies(ue: UserEvents) -> None:
    """The worker is killed."""
    assert ue.open_data().register(ue.name()).index == 0
    os.kill(os.getpid(), signal.SIGKILL)
