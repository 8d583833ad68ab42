"""SIGTERM interrupts like Ctrl-C, and once: further ones do not interrupt the clean-up.

They are common: timeout(1) and systemd send SIGTERM to every process of a run, and the first
process forwards it to its session.
"""

from __future__ import annotations

import atexit
import signal
import time

# Seconds in which SIGTERM is a copy of the signal before it.
_SAME_S = 5.0


class _Handler:
    """The handler of both signals."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def __call__(self, number: int, _: object) -> None:
        """Raise KeyboardInterrupt, but not for a copy."""
        before, self._last = self._last, time.monotonic()
        if number == signal.SIGINT or self._last - before > _SAME_S:
            raise KeyboardInterrupt


_interrupt = _Handler()


def by_sigterm(*, forwarded: bool = False) -> None:
    """Let SIGTERM interrupt this process like SIGINT.

    With ``forwarded`` a parent may send SIGTERM for a SIGINT that this process gets as well, so
    that the second of the two does nothing.  An ignored SIGINT stays ignored.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    # The interpreter removes its handlers before the process ends.
    atexit.register(signal.signal, signal.SIGTERM, signal.SIG_IGN)
    if forwarded and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
