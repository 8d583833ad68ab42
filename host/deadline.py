"""Time limits: a deadline is created once and handed down to everything that waits."""

from __future__ import annotations

import time

from msgspec import Struct, field

from host.errors import DeadlineExpired

# The longest sleep of one `pause`.
_NAP_S = 0.05


class Deadline(Struct, frozen=True):
    """`seconds` from its creation, on the monotonic clock.

    `what` names the awaited event, `basis` says how the number of seconds came about.
    """

    seconds: float
    what: str
    basis: str = ""
    started: float = field(default_factory=time.monotonic)

    @property
    def limit(self) -> str:
        """The seconds and their basis, for messages."""
        return f"{round(self.seconds, 2):g} s" + (f" ({self.basis})" if self.basis else "")

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def expired(self) -> bool:
        """Whether no time is left."""
        return self.elapsed >= self.seconds

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.seconds - self.elapsed)

    def check(self) -> None:
        """Raise DeadlineExpired if no time is left."""
        if self.expired:
            raise DeadlineExpired(f"no {self.what} within {self.limit}")

    def pause(self, seconds: float = 0.005) -> None:
        """Sleep at most 50 ms and never past the end.  Raises DeadlineExpired."""
        self.check()
        time.sleep(min(seconds, _NAP_S, self.remaining()))

    def child(self, seconds: float, what: str) -> Deadline:
        """A deadline for a part of the work, never later than this one."""
        return Deadline(min(seconds, self.remaining()), what, self.basis)
