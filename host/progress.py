"""Progress of long preparations, on a terminal or in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from msgspec import Struct

from host.deadline import Deadline

# In a log, one line in this many seconds shows that the work continues.
QUIET_INTERVAL_S = 15.0
# The time after which a rate is known well enough to estimate the rest; the usual rate counts as
# much as this time.
RATE_S = 10.0
_PREFIX = "uevt: "


class Step(Struct, frozen=True):
    """One report of a preparation.

    `done` and `expected` count objects while compiling, or `unit` (`expected` is an estimate, None
    if there is none), `begun` of them were done before; `elapsed_s` is the time since the phase
    began, `usual_s` what one of them usually takes, 0 if unknown.  The next step of the same phase
    replaces a `passing` one.  While `idle` nothing happens: in a log, one line is enough.
    """

    phase: str
    elapsed_s: float = 0.0
    done: int | None = None
    expected: int | None = None
    begun: int = 0
    usual_s: float = 0.0
    unit: str = "objects"
    passing: bool = False
    idle: bool = False

    def __str__(self) -> str:
        parts = [self.phase]
        if self.done is not None and self.expected is not None:
            # The estimate is of another configuration or compiler: never print 103 %.
            parts.append(f"{self.done}/{max(self.done, self.expected)} {self.unit}")
        elif self.done is not None:
            unit = self.unit.removesuffix("s") if self.done == 1 else self.unit
            parts.append(f"{self.done} {unit}")
        if self.elapsed_s >= 1.0:
            parts.append(_clock(self.elapsed_s))
        if self.passing and self._left_s >= 1.0:
            parts.append(f"about {_clock(self._left_s)} left")
        return ", ".join(parts)

    @property
    def _left_s(self) -> float:
        """The time left at the present rate, 0 while it is unknown."""
        if self.done is None or self.expected is None:
            return 0.0
        done: float = self.done - self.begun
        elapsed_s = self.elapsed_s
        if self.usual_s:
            done, elapsed_s = done + RATE_S / self.usual_s, elapsed_s + RATE_S
        if done <= 0 or elapsed_s < RATE_S:
            return 0.0
        return elapsed_s * max(0, self.expected - self.done) / done


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes}:{seconds:02d}"


Progress = Callable[[Step], None]


def silent(_: Step) -> None:
    """Report nothing."""


def ticking(progress: Progress, deadline: Deadline) -> Callable[[], None]:
    """An `on_tick` that reports the phase and its duration."""

    def tick() -> None:
        progress(Step(deadline.what, elapsed_s=deadline.elapsed, passing=True))

    return tick


class StreamProgress:
    """Progress on a text stream: one line rewritten in place on a terminal, few lines elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._in_place = stream.isatty()
        self._width = 0
        self._last = float("-inf")
        self._phase = ""

    def __call__(self, step: Step) -> None:
        if self._in_place:
            self._rewrite(step)
        else:
            self._append(step)

    def _rewrite(self, step: Step) -> None:
        text = f"{_PREFIX}{step}"
        if step.phase != self._phase and self._width:
            self._stream.write("\n")
            self._width = 0
        self._phase = step.phase
        self._stream.write("\r" + text.ljust(self._width))
        self._width = len(text)
        if not step.passing:
            self._stream.write("\n")
            self._width = 0
        self._stream.flush()

    def _append(self, step: Step) -> None:
        now = time.monotonic()
        fresh = step.phase != self._phase
        due = now - self._last >= QUIET_INTERVAL_S and not step.idle
        if fresh or not step.passing or due:
            self._stream.write(f"{_PREFIX}{step}\n")
            self._stream.flush()
            self._last = now
        self._phase = step.phase
