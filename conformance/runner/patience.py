"""The limits of waits for deferred work: in full until one was in vain, a fraction from then on.

On a kernel that never drops references every such wait takes its whole limit.  The first one is
judged; with full limits for all others a run would last for hours and say the same.  That holds
for all workers of a session, and for a wait that has begun.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from conformance.client.executor import Deadline
from host.shared_count import SharedCount

# Deferred work takes a hundredth of the limits.
_SHARES = (1.0, *4 * (0.1,), 0.02)


class Clock(Protocol):
    """The part of a channel that makes deadlines."""

    def deadline(self, seconds: float, what: str) -> Deadline:
        """A deadline scaled to the speed of the guest."""
        ...


class Patience:
    """The limits of all guests; ``in_vain`` counts the waits in vain of all workers."""

    def __init__(self, in_vain: SharedCount | None = None) -> None:
        self._in_vain = in_vain or SharedCount()

    @property
    def share(self) -> float:
        """The part of a limit that is left."""
        return _SHARES[min(self._in_vain.value, len(_SHARES) - 1)]

    def lose(self) -> None:
        """A wait was in vain."""
        self._in_vain.increment()

    def deadline(self, clock: Clock, seconds: float, what: str) -> Deadline:
        """The deadline of a wait; ``seconds`` are those of an idle machine."""
        share = self.share
        granted = clock.deadline(seconds * share, what)
        return _Judged(self, granted, share, granted.remaining())


class _Judged(Struct, frozen=True):
    """A deadline that counts its end as a wait in vain: ask only while nothing has come.

    It ends early when another wait was in vain meanwhile.
    """

    patience: Patience
    deadline: Deadline
    share: float
    limit: float

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        shortened = self.patience.share < self.share
        if self.deadline.expired or (shortened and not self.remaining()):
            self.patience.lose()
            return True
        return False

    def remaining(self) -> float:
        """Seconds left."""
        not_granted = self.limit * (1 - self.patience.share / self.share)
        return max(0.0, self.deadline.remaining() - not_granted)
