"""A fuzz target: a parser, valid inputs, and the exceptions it documents."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from msgspec import Struct

# An input takes milliseconds; the limit allows for a busy machine.
INPUT_S = 2.0


class Target(Struct, frozen=True):
    """A parser of input that may be hostile.

    ``parse`` returns, or raises one of ``documented``; it asserts whatever else must hold.
    ``seeds`` are valid inputs, ``tokens`` pieces of its language.
    """

    name: str
    parse: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    documented: tuple[type[Exception], ...] = ()
    tokens: tuple[bytes, ...] = ()

    def accepts(self, data: bytes) -> bool:
        """Whether the parser accepts an input; False for a documented error.

        Raises any other exception of the parser, and TooSlow.
        """
        with limited(INPUT_S):
            try:
                self.parse(data)
            except self.documented:
                return False
        return True


def on_file(file: Path, read: Callable[[Path], None]) -> Callable[[bytes], None]:
    """A parser that writes its input to a file and reads that."""

    def parse(data: bytes) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Some file systems flush a file at once when it is truncated and rewritten.
        file.unlink(missing_ok=True)
        file.write_bytes(data)
        read(file)

    return parse


class TooSlow(Exception):
    """An input took too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TooSlow after some seconds.  In the main thread only."""

    def expire(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
