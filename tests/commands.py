"""`uevt` in a process of its own, and the results of a run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.enclosure import ROOT, UEVT

# Seconds for a run on a busy machine.
PATIENCE = 600
# Output does not depend on the terminal of the tests.
PLAIN = {"TERM": "xterm", "NO_COLOR": "", "FORCE_COLOR": "", "PYTHONPATH": str(ROOT)}


def uevt(*words: object, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and check its exit code."""
    return ended([*UEVT, *map(str, words)], code, **environment)


def ended(
    command: list[str], code: int | None = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run any command to its end, and check its exit code unless it is None."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **PLAIN, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert code in (None, done.returncode), done.stdout + done.stderr
    return done


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """The verdict."""
    return done.stdout.strip().splitlines()[-1]


def results(out: Path) -> dict[str, Any]:
    """results.json of a run."""
    read: dict[str, Any] = json.loads((out / "results.json").read_text())
    return read


def outcomes(out: Path) -> dict[str, str]:
    """The outcomes of a run, by case."""
    return {name: case["outcome"] for name, case in cases(out).items()}


def cases(out: Path) -> dict[str, dict[str, Any]]:
    """The cases of a run, by id."""
    return {case["id"]: case for case in results(out)["cases"]}
