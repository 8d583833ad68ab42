"""A case about a switch whose probe panics the guest the first time."""

from __future__ import annotations

import os
from pathlib import Path

from conformance.cases.case import surface
from conformance.client.user_events import UserEvents

case = surface(
    "drill",
    doc="Documentation/admin-guide/sysrq.rst@v6.12: c performs a system crash",
    level="contract",
)


@case
def test_before(ue: UserEvents) -> None:
    """Passes."""
    assert ue.open_data().register(ue.name()).index == 0


@case(spec="drivers/tty/sysrq.c:sysrq_handle_crash", switch="persist")
def test_switch(ue: UserEvents) -> None:
    """The program passes unless it panics the guest."""
    once = Path(os.environ["UEVT_DRILL_ONCE"])
    if not once.exists():
        once.touch()
        ue.tracefs.write("/proc/sysrq-trigger", "c")
    assert ue.open_data().register(ue.name(), flags=1).errno == ""
