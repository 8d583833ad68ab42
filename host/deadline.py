"""A point in time that work has to end by, and what the work is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Deadline:
    """`seconds` from its creation, on the monotonic clock; `what` says what they are for."""

    seconds: float
    what: str
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.seconds - self.elapsed)

    @property
    def expired(self) -> bool:
        """Whether no time is left."""
        return self.remaining == 0.0
