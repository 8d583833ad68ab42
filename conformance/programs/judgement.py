"""What is known of a program after its recording has been judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct, field

from conformance import ops
from conformance.client.lockstep import Step
from conformance.model.answers import Answer

# Calls that say nothing about events.
_OF_FILES = (ops.Open, ops.Close, ops.Dup, ops.Mmap, ops.Lseek)


class Verdict(StrEnum):
    """The result of one call.

    A refused call failed as the ABI says: the program has made a mistake, or asked what it may do,
    or the release has a known bug.
    """

    ALLOWED = "allowed"
    REFUSED = "refused"
    DEVIATES = "deviates"


class JudgedCall(Struct, frozen=True):
    """A call of user_events: its steps (stores first), the verdict, why it was refused.

    ``subjects`` is what it is about: calls with a common one explain each other.  ``bug`` is the
    known bug of the kernel without which a refused call succeeds.
    """

    name: str
    steps: tuple[Step, ...]
    verdict: Verdict
    reason: str = ""
    subjects: frozenset[str] = frozenset()
    bug: str = ""

    @property
    def step(self) -> Step:
        """The step of the call itself."""
        return self.steps[-1]


class SeenEvent(Struct):
    """An event of the program: how often it was registered and written, and what was read back."""

    name: str
    fields: str
    index: int
    registered: int = 0
    writes: int = 0
    records: int = 0


class Judgement(Struct):
    """The calls, the events by tracepoint, and what could not be judged.

    ``calls`` leaves allowed writes out, which may be millions; ``judged`` counts all calls.
    ``not_judged`` counts calls by reason, ``foreign`` those on other files of tracefs; ``status``
    is the wait status of the program, None if its end was not recorded.
    """

    calls: list[JudgedCall] = field(default_factory=list)
    judged: int = 0
    events: dict[str, SeenEvent] = field(default_factory=dict)
    not_judged: Counter[str] = field(default_factory=Counter)
    foreign: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)
    records: int = 0
    status: int | None = None
    complete: bool = False

    def of(self, verdict: Verdict) -> list[JudgedCall]:
        """The calls with a verdict."""
        return [each for each in self.calls if each.verdict is verdict]

    @property
    def decided(self) -> bool:
        """Whether the calls that were judged are enough for a verdict.

        If others were not judged, to open, map and close files is not.
        """
        if self.of(Verdict.DEVIATES) or self.of(Verdict.REFUSED):
            return True
        if not self.not_judged:
            return self.judged > 0
        writes = self.judged - len(self.calls)
        return writes > 0 or any(
            not isinstance(each.step.operation, _OF_FILES) for each in self.calls
        )


def judged_call(name: str, steps: tuple[Step, ...], allowed: Sequence[Answer]) -> JudgedCall:
    """A call with the differences of its last step; the reason is that of an allowed answer."""
    seen, found = steps[-1].seen, steps[-1].differences
    if found:
        return JudgedCall(name, steps, Verdict.DEVIATES)
    if seen.ok:
        return JudgedCall(name, steps, Verdict.ALLOWED)
    reason = next((each.reason for each in allowed if each.errno == seen.errno), "")
    return JudgedCall(name, steps, Verdict.REFUSED, reason)
