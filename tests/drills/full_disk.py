"""A case in whose time the disk of the results is full, at its first attempt only.

UEVT_DRILL_DISK is where that disk is mounted.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import vm.machine
from conformance.cases.case import surface
from conformance.client.user_events import UserEvents
from tests.drills.provoke import fill

case = surface("drill")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full before the first attempt begins, and mended before the second."""
    disk = Path(os.environ["UEVT_DRILL_DISK"])
    ballast = disk / "ballast"
    if ballast.exists():
        ballast.unlink()
        return
    console = disk / "out" / "console.log"
    with console.open("ab") as file:
        # Of its last page nothing is left either.
        file.write(b"\n" * (-console.stat().st_size % 4096))
    fill(disk)
    # It will not come.
    monkeypatch.setattr(vm.machine, "_MARK_S", 0.2)


@case
def test_full(full: None, ue: UserEvents) -> None:
    """Its answers are right, and nothing can be said of the console."""
    assert ue.open_data().register(ue.name()).index == 0


@case
def test_after(ue: UserEvents) -> None:
    """Another guest works afterwards."""
    assert ue.open_data().register(ue.name("after")).index == 0
