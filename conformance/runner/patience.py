"""The limits of waits for deferred work: in full until one was in vain, a fraction from then on.

On a kernel that never drops references every such wait takes its whole limit.  The first one is
judged; with full limits for all others a run would last for hours and say the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from conformance.client.executor import Deadline

# Deferred work takes a hundredth of the limits.
_SHARES = (1.0, *4 * (0.1,), 0.02)


class Clock(Protocol):
    """The part of a channel that makes deadlines."""

    def deadline(self, seconds: float, what: str) -> Deadline:
        """A deadline scaled to the speed of the guest."""
        ...


class Patience:
    """The limits of all guests of one worker."""

    def __init__(self) -> None:
        self._in_vain = 0

    @property
    def share(self) -> float:
        """The part of a limit that is left."""
        return _SHARES[min(self._in_vain, len(_SHARES) - 1)]

    def lose(self) -> None:
        """A wait was in vain."""
        self._in_vain += 1

    def deadline(self, clock: Clock, seconds: float, what: str) -> Deadline:
        """The deadline of a wait; ``seconds`` are those of an idle machine."""
        return _Judged(self, clock.deadline(seconds * self.share, what))


@dataclass(frozen=True, slots=True)
class _Judged:
    """A deadline that counts its end as a wait in vain: ask only while nothing has come."""

    patience: Patience
    deadline: Deadline

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        if self.deadline.expired:
            self.patience.lose()
            return True
        return False

    def remaining(self) -> float:
        """Seconds left."""
        return self.deadline.remaining()
