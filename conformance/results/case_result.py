"""The result of a case: what differed, the evidence, and the kernel's reports.

``CaseResult.to_json`` gives one entry of ``cases`` in results.json (schema 1);
``CaseResult.from_json`` reads it back, and names an invalid key.
"""

from __future__ import annotations

import math
import re
from enum import StrEnum
from itertools import takewhile
from typing import Any

from msgspec import Struct, to_builtins

from conformance.results.json_codec import decode
from conformance.results.outcome import UNEXPECTED, Blame, Level, Outcome, SkipReason
from conformance.results.recorded_program import RecordedStep
from host.text import cut

CASE_ID = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+")
"""``surface.name[.variant]``."""


MODULE_SURFACE = "module"
"""Surface of results about modules of the user."""
LEFTOVER, ENABLERS, AFTERWARDS = AFTERMATH = ("leftover", "enablers", "afterwards")
"""Last words of ids of results about what the kernel kept of a case, or did after it."""


def aftermath_of(id: str) -> str:
    """The id of the case, if an id is of a result about its aftermath, else ""."""
    case, _, last = id.rpartition(".")
    return case.removesuffix(".probe") if last in AFTERMATH else ""


# Characters of a side that one line shows, and of these before the first difference.
_LONGEST_SIDE = 160
_SIDE_BEFORE = 40


class Mismatch(Struct, frozen=True):
    """One answer of the kernel that neither the model nor a literal of the case allows.

    ``step`` counts the operations of the case from 1; 0 is the case as a whole.  ``field`` is the
    part compared: ``errno``, ``value``, ``data``, ``memory`` with actor and name, ``literal``
    for a value that the case states, ``console``, or what the kernel kept or lacks: ``leftover``,
    ``enablers``, ``files``, ``guest`` with the state that changed.
    """

    step: int
    field: str
    allowed: str
    observed: str

    def __str__(self) -> str:
        place = f"step {self.step}" if self.step else "the case as a whole"
        sides = [side.strip("\n") or "nothing" for side in (self.allowed, self.observed)]
        if max(map(len, sides)) > _LONGEST_SIDE:
            same = takewhile(lambda pair: pair[0] == pair[1], zip(*sides, strict=False))
            start = max(len(list(same)) - _SIDE_BEFORE, 0)
            sides = [cut("…" * bool(start) + side[start:], _LONGEST_SIDE) for side in sides]
        return "{}, {}: allowed {}, observed {}".format(place, self.field, *sides)


class Evidence(Struct, frozen=True):
    """What a reader needs to judge the outcome.

    ``steps`` are the program as text, one numbered line for each call; ``model`` the answers that
    the model allows at the steps that differ, ``kernel`` those of the kernel; ``docs`` the
    documentation in our own words, as ``file@tag: text``; ``spec`` the kernel function that
    decides; ``console`` the console output during the case.  ``program`` is the program as data,
    empty for a case that passed; ``left_out`` says why it is missing otherwise.
    """

    steps: tuple[str, ...] = ()
    model: str = ""
    kernel: str = ""
    docs: str = ""
    console: str = ""
    spec: str = ""
    program: tuple[RecordedStep, ...] = ()
    left_out: str = ""

    @property
    def reference(self) -> str:
        """Documentation and the kernel function that decides, in one text."""
        return f"{self.docs} (decided by {self.spec})" if self.spec else self.docs


class Report(Struct, frozen=True):
    """A report of the kernel on its console.

    ``title`` is its first line.  ``fingerprint``, made of ``kind`` and the first of ``frames``, is
    the same for one cause on every kernel.  ``context`` names the task, if it is not of the case;
    ``after`` the case that had ended before, if it is another.  ``allowed`` is the rule that
    excuses it, "" for none.
    """

    kind: str  # a ReportKind of this or a later version
    title: str
    fingerprint: str
    frames: tuple[str, ...] = ()
    context: str = ""
    after: str = ""
    allowed: str = ""

    def __str__(self) -> str:
        return f"{self.title} (in {self.context})" if self.context else self.title


class Which(StrEnum):
    """Which of two runs of a case."""

    FIRST = "first"
    SECOND = "second"


class Rerun(Struct, frozen=True):
    """The other result of a case that ran twice; ``of`` says which run gave it."""

    outcome: Outcome
    blame: Blame
    reason: str
    of: Which


class CaseResult(Struct, frozen=True):
    """The final result of one case.

    ``reason`` is one line for people, for SKIP a ``SkipReason``.  ``adapted`` names the measured
    switches that the case depends on and that differ from the profile.  ``digest`` identifies the
    program that ran, independent of names and addresses, ``course`` its beginning (see
    ``conformance.ops.digest``).  ``reports`` are the kernel's reports on the console;
    ``sentence`` is what the case proves.  ``file`` and ``line`` locate the failing line of the
    case, else its function.  ``level`` is the kind of promise, ``bug`` the ids of the known bugs of
    an XFAIL or FIXED, separated by spaces.  Raises ValueError for an invalid id, a SKIP without a
    reason code, or an invalid duration.
    """

    id: str
    surface: str
    tier: str
    outcome: Outcome
    blame: Blame = Blame.NONE
    reason: str = ""
    duration_s: float = 0.0
    adapted: tuple[str, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    evidence: Evidence = Evidence()
    rerun: Rerun | None = None
    digest: str | None = None
    course: str = ""
    reports: tuple[Report, ...] = ()
    sentence: str = ""
    file: str = ""
    line: int = 0
    level: Level = Level.CONTRACT
    bug: str = ""

    def __post_init__(self) -> None:
        if not CASE_ID.fullmatch(self.id):
            raise ValueError(f"{self.id!r} is not a case id: surface.name[.variant] of [a-z0-9_-]")
        if self.id.partition(".")[0] != self.surface:
            raise ValueError(f"case {self.id} does not belong to the surface {self.surface!r}")
        if self.outcome is Outcome.SKIP and self.reason not in set(SkipReason):
            raise ValueError(f"case {self.id}: SKIP needs one of {', '.join(SkipReason)} as reason")
        if not (math.isfinite(self.duration_s) and self.duration_s >= 0):
            raise ValueError(f"case {self.id}: {self.duration_s} is not a duration in seconds")

    @property
    def location(self) -> str:
        """``file:line`` in the source of the case, "" if unknown."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def unexpected(self) -> bool:
        """Whether the kernel deviated, and no known bug explains it."""
        return self.outcome in UNEXPECTED

    @property
    def aftermath_of(self) -> str:
        """The id of the case, if this is about what the kernel kept of it or did after it."""
        return aftermath_of(self.id)

    @property
    def difference(self) -> str:
        """The reason of the outcome, else what differs; text of any length."""
        return self.reason or "; ".join(map(str, self.mismatches))

    @property
    def explanation(self) -> str:
        """The reason, that of a SKIP with its clause."""
        if self.outcome is not Outcome.SKIP:
            return self.reason
        return f"{self.reason}: {SkipReason(self.reason).sentence}"

    @property
    def has_unexcused_report(self) -> bool:
        """Whether the kernel reported something that no rule excuses."""
        return any(not each.allowed for each in self.reports)

    @property
    def not_built(self) -> bool:
        """Whether the kernel of its guest has no user_events."""
        return self.skipped_for(SkipReason.NOT_BUILT)

    @property
    def had_a_guest(self) -> bool:
        """Whether it can tell what the kernel has: not one that the running kernel cannot judge."""
        return not self.skipped_for(SkipReason.RUNNING_KERNEL)

    def skipped_for(self, reason: SkipReason) -> bool:
        """Whether it was skipped for this reason."""
        return self.outcome is Outcome.SKIP and self.reason == reason

    def to_json(self) -> dict[str, Any]:
        """One entry of ``cases`` in schema 1."""
        document: dict[str, Any] = to_builtins(self)
        return document

    @classmethod
    def from_json(cls, data: object, where: str = "case") -> CaseResult:
        """Read the output of ``to_json``.  Raises SchemaError naming the place."""
        return decode(cls, data, where)
