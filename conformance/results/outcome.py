"""Levels of cases, outcomes, blame, reasons to skip, and verdicts of runs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Level(StrEnum):
    """The kind of promise that a case tests, the strongest first."""

    CONTRACT = "contract"  # the documentation or the uapi header states it
    BEHAVIOUR = "behaviour"  # undocumented, but programs of user_events can depend on it
    DETAIL = "detail"  # an accident of the implementation, or other tracing code

    @property
    def words(self) -> str:
        """The level as a report names it."""
        return "undocumented behaviour" if self is Level.BEHAVIOUR else self.value

    def at_most(self, most: Level) -> Level:
        """This level, or ``most`` if that is weaker."""
        levels = list(Level)
        return levels[max(levels.index(self), levels.index(most))]


class Outcome(StrEnum):
    """The outcome of a case.

    A deviation is FAIL, CHANGED or NOTE, by the level of its case.  XFAIL is a known bug of the
    kernel; FIXED is one that this kernel no longer has.
    """

    PASS = "PASS"
    FAIL = "FAIL"
    CHANGED = "CHANGED"
    NOTE = "NOTE"
    XFAIL = "XFAIL"
    FIXED = "FIXED"
    SKIP = "SKIP"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"
    ERROR = "ERROR"


CONFORMING = frozenset({Outcome.PASS, Outcome.FIXED})
"""The kernel did as documented."""
LOST = frozenset({Outcome.CRASH, Outcome.TIMEOUT})
"""The kernel lost the guest: unexpected at every level."""
OUTCOME_OF: Mapping[Level, Outcome] = {
    Level.CONTRACT: Outcome.FAIL,
    Level.BEHAVIOUR: Outcome.CHANGED,
    Level.DETAIL: Outcome.NOTE,
}
"""The outcome of a deviation by the level of its case."""
DEVIATIONS = frozenset(OUTCOME_OF.values())
"""Answers that neither the model nor the case allows."""
UNEXPECTED = LOST | DEVIATIONS
"""The kernel did not do as documented, and no known bug explains it."""
NOT_OK = UNEXPECTED | {Outcome.ERROR}
"""Unexpected outcomes, and errors of the suite, the guest or the host."""
NO_VERDICT = frozenset({Outcome.SKIP, Outcome.ERROR})
"""Outcomes that say nothing about the kernel."""


def failing(line: Level) -> frozenset[Outcome]:
    """The outcomes that fail a run which tolerates deviations below a level."""
    levels = list(Level)
    return LOST | {OUTCOME_OF[level] for level in levels[: levels.index(line) + 1]}


class Blame(StrEnum):
    """Who must act on an outcome."""

    KERNEL = "kernel"
    MODEL = "model"
    GUEST = "guest"
    HOST = "host"
    CASE = "case"
    MODULE = "module"  # a module of the user, loaded for the run
    HARNESS = "harness"  # two runs of one program contradict each other
    NONE = "none"


class SkipReason(StrEnum):
    """Why a case that applies to the profile was not judged."""

    sentence: str
    """One clause for a report."""

    NOT_BUILT = "not_built", "the kernel was built without user_events"
    CONFIG = "config", "the kernel lacks an option that these cases need"
    HOST_TOOL = "host_tool", "a program that these cases need is missing on the host"
    MODULE = "module", "no helper module was built for this kernel: it is none of the catalog's"
    RUNNING_KERNEL = "running_kernel", "these cases need a kernel of their own, not the running one"
    CONTRADICTED = "contradicted_switch", "the kernel lacks a switch of its profile"

    def __new__(cls, value: str, sentence: str = "") -> SkipReason:
        """A code with its clause."""
        reason = str.__new__(cls, value)
        reason._value_, reason.sentence = value, sentence
        return reason


class RunVerdict(StrEnum):
    """The verdict of a whole run about its kernel; ERROR is no verdict."""

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_BUILT = "NOT_BUILT"
    ERROR = "ERROR"
