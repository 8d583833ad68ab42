"""Sessions of `uevt run`: their end, and their number of guests."""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from pathlib import Path

import pytest

from conformance.cli.main import main
from conformance.results.exit_codes import ExitStyle
from conformance.session import launch
from conformance.session.launch import session
from kernels.errors import UserMistake

# Waits for SIGTERM, while its parent receives a signal.
LISTENS = """\
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit({code}))
os.kill(os.getppid(), signal.{sent})
time.sleep(60)
"""
DEAF = """\
import os, signal, time
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


@pytest.mark.parametrize(
    "text",
    [
        LISTENS.format(code=130, sent="SIGTERM"),
        LISTENS.format(code=0, sent="SIGTERM"),
        LISTENS.format(code=130, sent="SIGINT"),
        DEAF,
    ],
)
def test_signals_are_forwarded_to_the_session(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The session writes its results; later kernels are not begun."""
    monkeypatch.setattr(launch, "_SESSION", ("-c", text))
    monkeypatch.setattr(launch, "_words", lambda *_: [])
    before = signal.getsignal(signal.SIGTERM)
    assert session(Namespace(ktap=None, exit_style="default"), "6.12", None) == 130
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_before_the_session_starts_is_forwarded(monkeypatch: pytest.MonkeyPatch) -> None:
    def words(*_: object) -> list[str]:
        os.kill(os.getpid(), signal.SIGTERM)
        return []

    monkeypatch.setattr(launch, "_SESSION", ("-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(launch, "_words", words)
    assert session(Namespace(ktap=None, exit_style="default"), "6.12", None) == 130


def test_sigint_in_the_start_of_the_session_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python itself ends with exit code 1, as after a FAIL."""
    text = "import os, signal, sys; os.kill(os.getppid(), signal.SIGINT); sys.exit(1)"
    monkeypatch.setattr(launch, "_SESSION", ("-c", text))
    monkeypatch.setattr(launch, "_words", lambda *_: [])
    assert session(Namespace(ktap=None, exit_style="default"), "6.12", None) == 130


@pytest.mark.parametrize("code", [-9, 137, 4, 5])
def test_killed_session_decides_the_exit_code(code: int) -> None:
    """An unknown exit code is an error of the host."""
    assert launch.decisive_code([0, code, 0], ExitStyle.DEFAULT) == 3


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with 16 processors and 64 GiB; the returned file holds its limits."""
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
def test_number_of_guests_respects_container_limits(
    host: Path, limit: str, flavour: str | None, guests: int
) -> None:
    host.write_text(f"{limit}\n")
    assert launch.guests_that_fit(flavour) == guests


def test_unknown_flavour_is_refused(host: Path) -> None:
    with pytest.raises(UserMistake, match="unknown flavour 'debgu'"):
        launch.guests_that_fit("debgu")


def test_a_second_expression_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-k", "write", "-k", "status"]) == 2
    assert "join them: -k 'A or B'" in capsys.readouterr().err
