"""A point in time that is handed down, and what is waited for until then."""

from __future__ import annotations

import time

from vm.errors import NoAnswer


class Deadline:
    """Seconds on the monotonic clock, counted from creation."""

    __slots__ = ("_end", "basis", "seconds", "what")

    def __init__(self, seconds: float, what: str, basis: str = "") -> None:
        """`basis` says how the seconds came about, for who wonders at them."""
        self.seconds = seconds
        self.what = what
        self.basis = basis
        self._end = time.monotonic() + seconds

    def __repr__(self) -> str:
        return f"Deadline({self.seconds:g} s for {self.what}, {self.remaining():.3f} s left)"

    @property
    def limit(self) -> str:
        """The seconds in words."""
        return f"{round(self.seconds, 2):g} s" + (f" ({self.basis})" if self.basis else "")

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._end - time.monotonic())

    @property
    def expired(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self._end

    def check(self) -> None:
        """Raise NoAnswer, saying what was waited for, once expired."""
        if self.expired:
            raise NoAnswer(f"no {self.what} within {self.limit}")

    def pause(self, seconds: float = 0.005) -> None:
        """Sleep a little, at most 50 ms and never past the end; raises NoAnswer once expired."""
        self.check()
        time.sleep(min(seconds, 0.05, self.remaining()))

    def child(self, seconds: float, what: str) -> Deadline:
        """A deadline for a part, never later than this one."""
        return Deadline(min(seconds, self.remaining()), what, self.basis)
