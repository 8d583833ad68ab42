"""What became of a case: the words every room shares, and the record of one result.

The runner, the reports and the pytest plugin all speak of results without knowing each
other.  ``CaseResult.to_json`` gives one
entry of ``cases`` in results.json (schema 1); ``CaseResult.from_json`` reads it back
and says which key is wrong when it cannot.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from conformance.results.json_codec import decode, encode

CASE_ID = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+")
"""``surface.name[.variant]``."""


class Outcome(StrEnum):
    """What a case showed.  XFAIL is a deviation somebody has explained beforehand."""

    PASS = "PASS"
    FAIL = "FAIL"
    XFAIL = "XFAIL"
    XPASS = "XPASS"
    SKIP = "SKIP"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"
    ERROR = "ERROR"


CONFORMING = frozenset({Outcome.PASS, Outcome.XPASS})
"""The kernel did as documented."""
UNEXPECTED = frozenset({Outcome.FAIL, Outcome.XPASS, Outcome.CRASH, Outcome.TIMEOUT})
"""Outcomes about the kernel that no expectation explains."""
NOT_OK = UNEXPECTED | {Outcome.ERROR}
"""Unexpected, or no verdict."""


class Blame(StrEnum):
    """Who must act on an outcome."""

    KERNEL = "kernel"
    MODEL = "model"
    GUEST = "guest"
    HOST = "host"
    CASE = "case"
    MODULE = "module"  # a module of the user's, loaded beside the kernel
    HARNESS = "harness"  # two runs of one program in this run contradict each other
    NONE = "none"


MODULE_SURFACE = "module"
"""Surface of results that are about modules of the user's and not about a case."""


class SkipReason(StrEnum):
    """Why a case that applies to the profile was not judged."""

    NOT_BUILT = "not_built"  # the kernel was built without user_events
    CONFIG = "config"  # the image was built elsewhere, without an option the case needs
    GUEST_SIZE = "guest_size"  # the guest has too few CPUs or too little memory
    HOST_TOOL = "host_tool"  # a program on the host is missing, such as a 32-bit compiler
    MODULE = "module"  # no helper module fits the image, or one of the user's does not load
    CONTRADICTED = "contradicted_switch"  # the kernel lacks a switch of its profile: `adapted`

    @property
    def sentence(self) -> str:
        """The same for people."""
        return _SENTENCES[self]


_SENTENCES = {
    SkipReason.NOT_BUILT: "the kernel was built without user_events",
    SkipReason.CONFIG: "the kernel lacks an option that these cases need",
    SkipReason.GUEST_SIZE: "the guest has too few CPUs or too little memory",
    SkipReason.HOST_TOOL: "a program that these cases need is missing on the host",
    SkipReason.MODULE: "no helper module was built for this kernel: it is none of the catalog's",
    SkipReason.CONTRADICTED: "the kernel lacks a switch of its profile",
}


class RunVerdict(StrEnum):
    """What a whole run says about its kernel; ERROR means that it says nothing."""

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_BUILT = "NOT_BUILT"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One answer of the kernel outside what the model, or a literal of the case, allows.

    ``step`` counts the operations of the case from 1; 0 is the case as a whole.
    ``field`` is the part compared: ``errno``, ``value``, ``data`` (what was read),
    ``memory`` followed by actor and address, or ``literal``, one that the case states.
    """

    step: int
    field: str
    allowed: str
    observed: str

    def __str__(self) -> str:
        place = f"step {self.step}" if self.step else "the case as a whole"
        return f"{place}, {self.field}: allowed {self.allowed}, observed {self.observed}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a reader needs to judge the outcome.

    ``steps`` are the operations, one numbered line each; ``model`` the answers that the model
    allows at the steps that differ, ``kernel`` those of the kernel; ``docs`` the documentation in
    our own words, as ``file@tag: text``; ``spec`` the kernel function that decides; ``console`` the
    console output during the case.
    """

    steps: tuple[str, ...] = ()
    model: str = ""
    kernel: str = ""
    docs: str = ""
    console: str = ""
    spec: str = ""

    @property
    def reference(self) -> str:
        """Documentation and the kernel function that decides, in one text."""
        return f"{self.docs} (decided by {self.spec})" if self.spec else self.docs


@dataclass(frozen=True, slots=True)
class Report:
    """Something that the kernel reported on its console.

    ``title`` is its first line; ``fingerprint`` the same for reports of one cause on whatever
    kernel, made of ``kind`` and the first of ``frames``, the functions of its stack.  ``context``
    says who ran, if that was no process of the case; ``after`` names the case after whose end it
    came, where that is another.  ``allowed`` is the rule that excuses it, "" where none does.
    """

    kind: str  # a ReportKind, of this suite or a later one
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
    """The result that does *not* stand; ``of`` says which of the two runs gave it."""

    outcome: Outcome
    blame: Blame
    reason: str
    of: Which


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The final result of one case.

    ``reason`` is one line for people, for SKIP a ``SkipReason``.  ``adapted`` names the measured
    switches that the case depends on and that differ from the profile.  ``digest`` identifies the
    program that ran, independent of names and addresses, ``course`` its beginning: see
    ``conformance.ops.digest.identify``.  ``reports`` are the kernel's reports on the console;
    ``sentence`` is what the case proves.  ``file`` and ``line`` locate the failing line of the
    case, else its function; they are empty for results as expected.  Raises ValueError for an
    invalid id, a SKIP without a reason code, or an invalid duration.
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
        """Whether this outcome makes the run FAIL."""
        return self.outcome in UNEXPECTED

    @property
    def complained_of(self) -> bool:
        """Whether the kernel reported something that no rule excuses."""
        return any(not each.allowed for each in self.reports)

    @property
    def not_built(self) -> bool:
        """Whether its guest's kernel had no user_events."""
        return self.skipped_for(SkipReason.NOT_BUILT)

    def skipped_for(self, reason: SkipReason) -> bool:
        """Whether it was not judged, for this reason."""
        return self.outcome is Outcome.SKIP and self.reason == reason

    def to_json(self) -> dict[str, Any]:
        """The result as one entry of ``cases`` in schema 1."""
        return {each.name: encode(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_json(cls, data: object, where: str = "case") -> CaseResult:
        """Read what ``to_json`` wrote.  Raises SchemaError naming the place."""
        return decode(cls, data, where)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A dated switch that the kernel was seen to contradict.

    ``measured`` is whether the kernel behaves as the switch ``says``, which its profile
    has the other way round; ``commit`` is the title of the commit that dates it, ``case``
    the id of the case about it.
    """

    switch: str
    measured: bool
    says: str
    commit: str
    case: str

    @property
    def override(self) -> str:
        """What says the same in ``--abi``."""
        return f"{self.switch}={'yes' if self.measured else 'no'}"


def abi_with(profile: str, contradictions: Iterable[Contradiction]) -> str:
    """The ``--abi`` under which none of these would be a contradiction."""
    found = {each.switch: each.override for each in contradictions}
    name, *overrides = [part.strip() for part in profile.split(",")]
    kept = [text for text in overrides if text.partition("=")[0] not in found]
    return ",".join([name, *kept, *found.values()])


def timed_out(*, answered_before: bool) -> tuple[Outcome, Blame]:
    """What a case that did not end in time is.

    The kernel can be accused of it only when the guest answered a health probe just
    before the case (``answered_before``); otherwise the guest was already lost.
    """
    return (Outcome.TIMEOUT, Blame.KERNEL) if answered_before else (Outcome.ERROR, Blame.GUEST)


def lost(result: CaseResult) -> bool:
    """Whether the case took its guest with it, or lost it, and is to be run once more."""
    if result.outcome is Outcome.ERROR:
        # A kernel that crashed or hung as it came up has reported it.
        unborn = result.blame is Blame.KERNEL and result.reports
        return bool(unborn) or result.blame in {Blame.HOST, Blame.GUEST}
    return result.outcome in {Outcome.CRASH, Outcome.TIMEOUT}


def settle(first: CaseResult, second: CaseResult) -> CaseResult:
    """The result that stands after a re-run on a new guest, with the other one recorded.

    CRASH and TIMEOUT stand whatever the re-run says: a race must not wash out a panic.
    When host or guest were to blame the first run said nothing about the kernel, so the
    re-run's result stands, even if it is an ERROR again.  What the kernel reported stands as
    well: it may have been said too late, but it was said.  Raises ValueError for results
    of two cases, or a first result that is no reason for a re-run.
    """
    if first.id != second.id:
        raise ValueError(f"a re-run of {first.id} cannot be settled with {second.id}")
    if not (lost(first) or first.complained_of):
        raise ValueError(f"{first.id} ended with {first.outcome}: its first result stands alone")
    if first.outcome is Outcome.ERROR:
        return replace(second, rerun=_other(first, Which.FIRST))
    return replace(first, rerun=_other(second, Which.SECOND))


def verdict_of(
    results: Iterable[CaseResult], contradictions: Sequence[Contradiction] = ()
) -> RunVerdict:
    """What a run with these results says about its kernel.

    No verdict (ERROR) goes before FAIL, since a run with a case missing may hide more
    than it shows; so does a run in which no case was judged, or in which only some guests
    of the one kernel had user_events.  A contradicted switch keeps
    the run at FAIL, and so do cases judged with measured switches (``adapted``): the
    kernel broke its profile even where the case about that switch was not selected.
    """
    results = tuple(results)
    unbuilt = [each.not_built for each in results]
    if unbuilt and all(unbuilt):
        return RunVerdict.NOT_BUILT
    if any(unbuilt) or any(each.outcome is Outcome.ERROR for each in results):
        return RunVerdict.ERROR
    if all(each.outcome is Outcome.SKIP for each in results):
        return RunVerdict.ERROR
    if contradictions or any(each.unexpected or each.adapted for each in results):
        return RunVerdict.FAIL
    return RunVerdict.PASS


def _other(result: CaseResult, which: Which) -> Rerun:
    return Rerun(result.outcome, result.blame, result.reason, which)
