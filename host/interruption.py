"""SIGTERM as Ctrl-C: it interrupts the work, but not the end that an interruption has begun.

It rarely comes alone: timeout(1) and systemd send it to every process of a run, and the first of
them forwards it to its session.
"""

from __future__ import annotations

import signal
import time

# Seconds in which SIGTERM repeats the signal before it.
_SAME_S = 5.0


class _Handler:
    """The handler of both signals."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def __call__(self, number: int, _: object) -> None:
        """Raise KeyboardInterrupt, for SIGTERM unless one was raised just now."""
        before, self._last = self._last, time.monotonic()
        if number == signal.SIGINT or self._last - before > _SAME_S:
            raise KeyboardInterrupt


_interrupt = _Handler()


def by_sigterm(*, of_parent: bool = False) -> None:
    """Let SIGTERM interrupt this process like SIGINT.

    With ``of_parent`` it also repeats a SIGINT, which stays ignored if it is.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    if of_parent and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
