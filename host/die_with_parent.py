"""Run a program that dies with the process that started it, however that one ends.

Used as `python -I -S leash.py PARENT-PID PROGRAM ARGUMENT…`: a program of its own because code run
between fork and exec would not be safe in a process with threads.
"""

from __future__ import annotations

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tie(parent: int) -> None:
    """Ask the kernel for SIGKILL when the parent ends."""
    # Imported here: who only asks where this file is does not wait for it.
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before we asked.
        raise SystemExit(1)


def main(parent: int, argv: list[str]) -> None:
    """Die with the parent, and become the program."""
    tie(parent)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
