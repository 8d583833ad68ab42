"""SIGTERM as Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import os, signal
from host import interruption
{before}
interruption.by_sigterm(forwarded=True)
for sent in {signals}:
    try:
        os.kill(os.getpid(), sent)
        print("on", end=" ")
    except KeyboardInterrupt:
        print("end", end=" ")
"""
IGNORED = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
INT, TERM = int(signal.SIGINT), int(signal.SIGTERM)


@pytest.mark.parametrize(
    ("before", "signals", "printed"),
    [
        ("", (TERM, TERM, TERM), "end on on"),
        # A terminal sends SIGINT to all, and the parent forwards it as SIGTERM.
        ("", (INT, TERM), "end on"),
        ("", (TERM, INT, INT), "end end end"),
        (IGNORED, (INT, TERM), "on end"),
        ("interruption._SAME_S = 0.0", (TERM, TERM), "end end"),
    ],
)
def test_sigterm_does_not_interrupt_twice(
    before: str, signals: tuple[int, ...], printed: str
) -> None:
    text = PROGRAM.format(before=before, signals=signals)
    command = [sys.executable, "-c", text]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == printed


LATE = """\
import os, signal, sys
from host import interruption
interruption.by_sigterm()

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

# Deleted after the handlers.
sys.modules["last"] = Last()
sys.exit(130)
"""


def test_sigterm_at_the_end_does_not_change_the_exit_code() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", LATE], cwd=root, timeout=60, check=False)
    assert done.returncode == 130
