"""A case whose worker dies in the first attempt, and others that pass.

UEVT_DIED names a file that records the death; UEVT_LATE is its delay in seconds.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from conformance.cases.case import surface, variants
from conformance.client.user_events import UserEvents

case = surface("drill", level="contract")


@case
def test_dies(ue: UserEvents) -> None:
    """The worker is killed once."""
    died = Path(os.environ["UEVT_DIED"])
    assert ue.open_data().register(ue.name()).index == 0
    if not died.exists():
        died.touch()
        time.sleep(float(os.environ.get("UEVT_LATE", "0")))
        os.kill(os.getpid(), signal.SIGKILL)


@variants(*range(1, 9), quick=8)
@case
def test_length(ue: UserEvents, length: int) -> None:
    """An event gets index 0."""
    assert ue.open_data().register(ue.name() + "x" * length).index == 0
