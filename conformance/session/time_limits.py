"""Time limits of a case and of a run, besides those of single calls and boots."""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec import Struct, field

from conformance.cases.case import Case
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Blame, Outcome
from host.deadline import Deadline
from host.shared_count import SharedCount
from vm.errors import GuestTrouble, HostTrouble

# Limit of a case in seconds of an idle machine; the longest take two.
CASE_S = 60.0
# Shares of the limit of a call after none, one, and more calls that were not answered in time.
_CALL_SHARES = (1.0, 0.5, 0.25)


class CaseTooLong(GuestTrouble):
    """A case did not end in time, although no call took longer than it may."""


class RunOver(HostTrouble):
    """The deadline of the run passed in the middle of a case."""


class RunLimit(Struct, frozen=True):
    """The end of a run by --deadline, on the monotonic clock that all processes share."""

    seconds: float
    end: float

    @classmethod
    def of(cls, seconds: float | None) -> RunLimit | None:
        """A limit this many seconds from now; None without --deadline."""
        return None if seconds is None else cls(seconds, time.monotonic() + seconds)

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.end

    @property
    def passed(self) -> str:
        """A message that the deadline has passed."""
        return f"the run's deadline of {self.seconds:g} s has passed (--deadline)"

    def not_judged(self, case: Case, case_id: str) -> CaseResult:
        """The result of a case that does not start after the deadline."""
        return CaseResult(
            id=case_id,
            surface=case.surface,
            tier=case.tier.value,
            outcome=Outcome.ERROR,
            blame=Blame.HOST,
            reason=f"not judged: {self.passed}",
        )


class Lost(Struct, frozen=True):
    """What all workers of a session lost: waits for pending work, and calls without an answer."""

    waits: SharedCount = field(default_factory=SharedCount)
    calls: SharedCount = field(default_factory=SharedCount)


class Limits:
    """The time left for a call: of its own limit, of its case, and of the run.

    Calls that hang shorten the limits of later ones, in all workers that share ``hung``: a kernel
    that hangs often takes all of them.
    """

    def __init__(self, run: RunLimit | None, hung: SharedCount | None = None) -> None:
        self._run = run
        self._case: Deadline | None = None
        self._hung = hung or SharedCount()
        #: The error of the limit that ends the last call before its own limit; None for its own.
        self.cut: RunOver | CaseTooLong | None = None

    def begin(self, case: Deadline) -> None:
        """Start a case with this deadline."""
        self._case = case

    def end(self) -> None:
        """End the case: its deadline holds for no later call."""
        self._case = None

    def hung(self) -> None:
        """A call was not answered in time."""
        self._hung.increment()

    def clip(self, call: Deadline) -> Deadline:
        """The deadline of a call, no later than those of its case and of the run.

        Raises CaseTooLong, RunOver.
        """
        share = _CALL_SHARES[min(self._hung.value, len(_CALL_SHARES) - 1)]
        left, self.cut = call.remaining() * share, None
        for of_limit, error in self._others():
            if of_limit <= 0:
                raise error
            if of_limit < left:
                left, self.cut = of_limit, error
        return call if left >= call.remaining() else call.child(left, call.what)

    def _others(self) -> Iterator[tuple[float, RunOver | CaseTooLong]]:
        """Seconds left of the run and of the case, each with the error of its end."""
        if self._run is not None:
            yield self._run.end - time.monotonic(), RunOver(self._run.passed)
        if self._case is not None:
            too_long = f"no {self._case.what} within {self._case.limit}"
            yield self._case.remaining(), CaseTooLong(too_long)
