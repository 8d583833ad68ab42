"""A case during whose first attempt the disk of the results is full.

UEVT_DRILL_DISK is the mount point of the disk.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import vm.machine
from conformance.cases.case import surface
from conformance.client.user_events import UserEvents
from tests.drills.provoke import fill

case = surface("drill", level="contract")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full before the first attempt, and free before the second."""
    disk = Path(os.environ["UEVT_DRILL_DISK"])
    ballast = disk / "ballast"
    if ballast.exists():
        ballast.unlink()
        return
    console = disk / "out" / "console.log"
    with console.open("ab") as file:
        # The last page is full, too.
        file.write(b"\n" * (-console.stat().st_size % 4096))
    fill(disk)
    # Not reached.
    monkeypatch.setattr(vm.machine, "_MARK_S", 0.2)


@case
def test_full(full: None, ue: UserEvents) -> None:
    """The answers are right, and the console is lost."""
    assert ue.open_data().register(ue.name()).index == 0


@case
def test_after(ue: UserEvents) -> None:
    """Another guest works afterwards."""
    assert ue.open_data().register(ue.name("after")).index == 0
