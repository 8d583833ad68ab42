"""The judgement of a case, and the exceptions that decide it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from conformance.results.case_result import Mismatch, Report
from conformance.results.outcome import Blame, Outcome, SkipReason


class Judgement(Struct, frozen=True):
    """Outcome of a case, whose fault it is, why, and the evidence."""

    outcome: Outcome
    blame: Blame
    reason: str
    console: str = ""
    reports: tuple[Report, ...] = ()


# Judges an error of the guest or host, given whether the guest answered just before; None for any
# other error.
Explain = Callable[[BaseException, bool], Judgement | None]


class NotJudged(Exception):
    """The kernel cannot be judged by a case; ``adapted`` names the switches that exclude it."""

    def __init__(self, code: SkipReason, why: str, adapted: tuple[str, ...] = ()) -> None:
        super().__init__(why)
        self.code = code
        self.adapted = adapted


class ModuleRefused(Exception):
    """The kernel does not load a module that was built for it."""


class NotInitialised(Exception):
    """The kernel was built with user_events, and has none of its files."""

    mismatch = Mismatch(0, "files", "user_events_data, user_events_status", "neither")
