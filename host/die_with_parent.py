"""Run a program that dies with the process that started it.

Used as `python -I -S die_with_parent.py PARENT-PID PROGRAM ARGUMENT…`: a program of its own because
code between fork and exec would not be safe in a process with threads.
"""

from __future__ import annotations

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tie(parent: int) -> None:
    """Let the kernel send SIGKILL when the parent ends."""
    # Imported here: callers that only need the path of this file do not wait for it.
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # The parent ended before the call.
        raise SystemExit(1)


def main(parent: int, argv: list[str]) -> None:
    """Tie this process to its parent, and become the program."""
    tie(parent)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
