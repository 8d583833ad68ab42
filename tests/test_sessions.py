"""The sessions behind `uevt run`: how they end, and how many guests they get."""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from pathlib import Path

import pytest

from conformance.results.exit_codes import ExitStyle
from conformance.session import launch
from conformance.session.launch import session
from kernels.errors import UserMistake

# Waits to be asked to end, after it saw to it that its parent is.
LISTENS = """\
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit({code}))
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""
DEAF = """\
import os, signal, time
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


@pytest.mark.parametrize("text", [LISTENS.format(code=130), LISTENS.format(code=0), DEAF])
def test_who_is_asked_to_end_lets_the_session_end(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """It may write its results; the kernels behind it are not begun."""
    monkeypatch.setattr(launch, "_SESSION", ("-c", text))
    monkeypatch.setattr(launch, "_words", lambda *_: [])
    before = signal.getsignal(signal.SIGTERM)
    assert session(Namespace(ktap=None, exit_style="default"), "6.12", None) == 130
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("code", [-9, 137, 4, 5])
def test_a_session_that_was_killed_decides(code: int) -> None:
    """A code that no ending has is the host's trouble, whatever the other kernels came to."""
    assert launch.decisive_code([0, code, 0], ExitStyle.DEFAULT) == 3


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host of 16 processors and 64 GiB, whose limits are in the file returned."""
    free, limit = tmp_path / "meminfo", tmp_path / "memory.max"
    free.write_text(f"MemTotal: 1 kB\nMemAvailable: {64 << 20} kB\n")
    monkeypatch.setattr(launch, "_MEMORY", free)
    monkeypatch.setattr(launch, "_LIMITS", (limit, tmp_path / "absent"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    return limit


@pytest.mark.parametrize(
    ("limit", "flavour", "guests"),
    [
        ("max", None, 8),
        (f"{4 << 30}", None, 5),
        # It takes 1024 MiB.
        (f"{4 << 30}", "debug", 3),
        (f"{1 << 28}", "debug", 1),
        (f"{0x7FFFFFFFFFFFF000}", None, 8),
    ],
)
def test_guests_fit_into_what_a_container_has(
    host: Path, limit: str, flavour: str | None, guests: int
) -> None:
    host.write_text(f"{limit}\n")
    assert launch._guests_that_fit(flavour) == guests


def test_a_flavour_there_is_not(host: Path) -> None:
    with pytest.raises(UserMistake, match="unknown flavour 'debgu'"):
        launch._guests_that_fit("debgu")
