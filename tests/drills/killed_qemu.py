"""A case whose QEMU is killed in its first attempt."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents
from tests.processes import children

case = surface("drill", level="contract")


@case
def test_killed(ue: UserEvents) -> None:
    """QEMU is killed once."""
    data = ue.open_data()
    once = Path(os.environ["UEVT_DRILL_ONCE"])
    if not once.exists():
        once.touch()
        os.kill(children(os.getpid(), "qemu")[0], signal.SIGKILL)
    assert data.register(ue.name()).index == 0


@case
def test_after(ue: UserEvents) -> None:
    """Another guest works afterwards."""
    assert ue.open_data().register(ue.name("after")).index == 0
