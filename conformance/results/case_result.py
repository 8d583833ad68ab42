"""Result types shared by runner, reports and plugin.

``CaseResult.to_json`` gives one entry of ``cases`` in results.json (schema 1);
``CaseResult.from_json`` reads it back, and names an invalid key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from conformance.results.json_codec import decode, encode
from conformance.results.recorded_program import RecordedStep

CASE_ID = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+")
"""``surface.name[.variant]``."""


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


MODULE_SURFACE = "module"
"""Surface of results about modules of the user."""
LEFTOVER, ENABLERS, AFTERWARDS = AFTERMATH = ("leftover", "enablers", "afterwards")
"""Last words of ids of results about what the kernel kept of a case, or did after it."""


class SkipReason(StrEnum):
    """Why a case that applies to the profile was not judged."""

    sentence: str
    """One clause for a report."""

    NOT_BUILT = "not_built", "the kernel was built without user_events"
    CONFIG = "config", "the kernel lacks an option that these cases need"
    GUEST_SIZE = "guest_size", "the guest has too few CPUs or too little memory"
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


@dataclass(frozen=True, slots=True)
class Mismatch:
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
        sides = (side.strip("\n") or "nothing" for side in (self.allowed, self.observed))
        return "{}, {}: allowed {}, observed {}".format(place, self.field, *sides)


@dataclass(frozen=True, slots=True)
class Evidence:
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


@dataclass(frozen=True, slots=True)
class Report:
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


@dataclass(frozen=True, slots=True)
class Rerun:
    """The other result of a case that ran twice; ``of`` says which run gave it."""

    outcome: Outcome
    blame: Blame
    reason: str
    of: Which


@dataclass(frozen=True, slots=True)
class CaseResult:
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
        case, _, last = self.id.rpartition(".")
        return case.removesuffix(".probe") if last in AFTERMATH else ""

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
        document: dict[str, Any] = encode(self)
        return document

    @classmethod
    def from_json(cls, data: object, where: str = "case") -> CaseResult:
        """Read the output of ``to_json``.  Raises SchemaError naming the place."""
        return decode(cls, data, where)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A dated switch that the kernel contradicts.

    ``measured`` is whether the kernel behaves as the switch ``says``; its profile has the opposite.
    ``commit`` is the title of the commit that dates the switch, ``case`` the id of its case,
    ``outcome`` what the contradiction amounts to.  The switch of a ``bug`` is on where the bug is
    fixed.
    """

    switch: str
    measured: bool
    says: str
    commit: str
    case: str
    outcome: Outcome = Outcome.FAIL
    bug: bool = False

    @property
    def override(self) -> str:
        """The switch as measured, for ``--abi``."""
        words = ("present", "fixed") if self.bug else ("no", "yes")
        return f"{self.switch}={words[self.measured]}"


def abi_with(profile: str, contradictions: Iterable[Contradiction]) -> str:
    """The ``--abi`` that agrees with the kernel in all of these."""
    found = {each.switch: each.override for each in contradictions}
    name, *overrides = [part.strip() for part in profile.split(",")]
    kept = [text for text in overrides if text.partition("=")[0] not in found]
    return ",".join([name, *kept, *found.values()])


def timed_out(*, answered_before: bool) -> tuple[Outcome, Blame]:
    """Outcome and blame of a case that did not end in time.

    The kernel is to blame only if the guest answered a health probe just before the case
    (``answered_before``); otherwise the guest was already lost.
    """
    return (Outcome.TIMEOUT, Blame.KERNEL) if answered_before else (Outcome.ERROR, Blame.GUEST)


def lost_guest(result: CaseResult) -> bool:
    """Whether the guest was lost, so that the case has to run again."""
    if result.outcome is Outcome.ERROR:
        # A kernel that crashed or hung during boot has reported it.
        unborn = result.blame is Blame.KERNEL and result.reports
        return bool(unborn) or result.blame in {Blame.HOST, Blame.GUEST}
    return result.outcome in LOST


def settle(first: CaseResult, second: CaseResult) -> CaseResult:
    """The final result of a case that ran twice, the second time on a new guest.

    CRASH and TIMEOUT are final: a race must not hide a panic.  After an ERROR of host or guest the
    second result is final, even if it is an ERROR again.  Otherwise the first result is final: the
    kernel's report counts even if the second run does not repeat it.  Raises ValueError for results
    of two cases, or a first result that needs no second run.
    """
    if first.id != second.id:
        raise ValueError(f"a re-run of {first.id} cannot be settled with {second.id}")
    if not (lost_guest(first) or first.has_unexcused_report):
        raise ValueError(f"{first.id} ended with {first.outcome}: its first result stands alone")
    if first.outcome is Outcome.ERROR:
        return replace(second, rerun=_other(first, Which.FIRST))
    return replace(first, rerun=_other(second, Which.SECOND))


def verdict_of(
    results: Iterable[CaseResult],
    contradictions: Sequence[Contradiction] = (),
    fail_on: Level = Level.CONTRACT,
) -> RunVerdict:
    """The verdict of a run with these results.

    A deviation of level ``fail_on`` or stronger makes the run FAIL, even if other cases have no
    result; a contradicted switch counts as the case about it would.  A run with errors, without a
    judged case, or in which only some guests had user_events, has no verdict (ERROR).
    """
    results = tuple(results)
    unbuilt = [each.not_built for each in results if each.had_a_guest]
    if unbuilt and all(unbuilt):
        return RunVerdict.NOT_BUILT
    outcomes = [each.outcome for each in results] + [each.outcome for each in contradictions]
    if not failing(fail_on).isdisjoint(outcomes):
        return RunVerdict.FAIL
    if any(unbuilt) or any(each.outcome is Outcome.ERROR for each in results):
        return RunVerdict.ERROR
    if all(each.outcome is Outcome.SKIP for each in results):
        return RunVerdict.ERROR
    return RunVerdict.PASS


def _other(result: CaseResult, which: Which) -> Rerun:
    return Rerun(result.outcome, result.blame, result.reason, which)
