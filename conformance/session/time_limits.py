"""How long a case and a run may take, beside the limits of single answers and boots."""

from __future__ import annotations

import time
from dataclasses import dataclass

from conformance.cases.case import Case
from conformance.results.case_result import Blame, CaseResult, Outcome
from host.deadline import Deadline
from vm.errors import GuestTrouble, HostTrouble

# Seconds of an idle machine in which a case has to end; the longest take two of them.
CASE_S = 60.0


class CaseTooLong(GuestTrouble):
    """A case did not end in time, though every single answer came."""


class RunOver(HostTrouble):
    """The run's time was used up in the middle of a case."""


@dataclass(frozen=True, slots=True)
class RunLimit:
    """--deadline: the end of a run on the monotonic clock, which all its processes share."""

    seconds: float
    end: float

    @classmethod
    def of(cls, seconds: float | None) -> RunLimit | None:
        """So many seconds from now on; None where nobody asked for a limit."""
        return None if seconds is None else cls(seconds, time.monotonic() + seconds)

    @property
    def over(self) -> bool:
        """Whether nothing more is judged."""
        return time.monotonic() >= self.end

    @property
    def passed(self) -> str:
        """That it is over, in words."""
        return f"the run's deadline of {self.seconds:g} s had passed (--deadline)"

    def not_judged(self, case: Case, case_id: str) -> CaseResult:
        """The result of a case that is not begun any more."""
        return CaseResult(
            id=case_id,
            surface=case.surface,
            tier=case.tier.value,
            outcome=Outcome.ERROR,
            blame=Blame.HOST,
            reason=f"not judged: {self.passed}",
        )


class Limits:
    """What is left for a call: of its own time, of its case's, and of the run's."""

    def __init__(self, run: RunLimit | None) -> None:
        self._run = run
        self._case: Deadline | None = None

    def begin(self, case: Deadline) -> None:
        """A case begins and has so much time."""
        self._case = case

    def clip(self, call: Deadline) -> Deadline:
        """A call's deadline, no later than the end of its case and of the run.

        Raises CaseTooLong, RunOver.
        """
        if self._run is not None and self._run.over:
            raise RunOver(self._run.passed)
        if self._case is not None and self._case.expired:
            raise CaseTooLong(f"no {self._case.what} within {self._case.limit}; every answer came")
        left = [call.remaining()]
        left += [self._run.end - time.monotonic()] if self._run is not None else []
        left += [self._case.remaining()] if self._case is not None else []
        return call if min(left) == left[0] else call.child(min(left), call.what)
