"""What is fuzzed: a reader, inputs that are right, and what it may raise."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

# One input takes milliseconds; this is on a machine that does other things too.
INPUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Target:
    """A reader of what may be hostile.

    ``read`` takes an input and returns, or raises one of ``documented``; what else it has to keep
    to it asserts itself.  ``seeds`` are valid inputs, ``tokens`` what they are made of.
    """

    name: str
    read: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    documented: tuple[type[Exception], ...] = ()
    tokens: tuple[bytes, ...] = ()

    def kind(self, data: bytes) -> str:
        """What comes of an input: "read", or the name of the documented error.

        Raises whatever else the reader raises, and TooSlow.
        """
        with limited(INPUT_S):
            try:
                self.read(data)
            except self.documented as error:
                return type(error).__name__
        return "read"


class TooSlow(Exception):
    """An input took longer than any may."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what takes longer with TooSlow.  In the main thread only."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
