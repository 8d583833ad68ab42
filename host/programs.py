"""Run a program of the host that has to succeed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class ProgramFailed(OSError):
    """A program that failed, did not start or did not end: str() is what it printed, or why."""


def output_of(
    command: Sequence[str | Path],
    seconds: float,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> str:
    """The standard output of a program.  Raises ProgramFailed."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=seconds,
            env=env,
            cwd=cwd,
        ).stdout
    except subprocess.CalledProcessError as error:
        printed: str = error.stderr.strip() or error.stdout.strip()
        raise ProgramFailed(printed or str(error)) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramFailed(str(error)) from None
