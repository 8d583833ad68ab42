"""A whole run as data: which kernel, on which host, and what became of each case."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from conformance.results.case_result import (
    MODULE_SURFACE,
    CaseResult,
    Contradiction,
    Outcome,
    RunVerdict,
    verdict_of,
)
from conformance.results.json_codec import SCHEMA, SchemaError, decode, encode

# Words of `uevt run` that a run of a single case does without.
_OF_A_WHOLE_RUN = (
    *("-k=", "--tier=", "--isolation=need", "--shuffle=", "--repeat="),
    *("--exit-style=", "--require"),
)


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """The kernel that was judged; ``profile`` is the contract it was judged by.

    ``build`` identifies the very kernel: a digest of all that decides what was built, patches
    included, or of the file of an image.
    """

    id: str
    release: str
    profile: str
    variant: str | None = None
    config_sha256: str | None = None
    source: str | None = None
    build: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """What is known of a run before its first case; also the first line of a journal.

    ``host`` holds facts by name: ``accel`` (kvm, tcg or none) must be there, and
    ``accel_reason`` says why it was chosen.  ``started`` is a UTC time as
    ``2026-11-20T17:44:00Z``; ``suite`` the revision of this suite, ``suite_sha256`` the digest
    of its files; ``asked`` are the words of `uevt run` that ask for the same; ``self_check`` is
    set when the model ran in place of a kernel, which says something about the suite and
    nothing about any kernel.  Raises ValueError for another schema, or no accelerator.
    """

    schema: int = SCHEMA
    kernel: KernelFacts
    host: dict[str, str]
    started: str
    suite: str
    suite_sha256: str | None = None
    asked: tuple[str, ...] = ()
    self_check: bool = False

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} was written by another uevt: not {SCHEMA}")
        if "accel" not in self.host:
            raise ValueError("host.accel is missing")

    def command_for(self, case: CaseResult) -> str:
        """The command that runs one case as this run did, "" if the run did not record it."""
        if not self.asked or case.surface == MODULE_SURFACE:
            return ""
        words = ["uevt", "run"]
        for word in self.asked:
            if not word.startswith(_OF_A_WHOLE_RUN):
                name, _, value = word.partition("=")
                words += [name, value] if value and not value.startswith("-") else [word]
        words += ["--tier", case.tier] if case.tier == "full" else []
        return shlex.join([*words, "-k", case.id])


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run that has ended, however it ended.

    ``selected`` counts the cases that were to run: a run with fewer results is no
    verdict.  ``note`` is one line about the run as a whole, such as why it ended early.
    ``not_built`` says that the kernel has no user_events, so that no case was judged;
    ``contradictions`` are the switches of its profile that it was seen to contradict.
    """

    head: RunHead
    cases: tuple[CaseResult, ...]
    selected: int
    duration_s: float
    note: str = ""
    not_built: bool = False
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def verdict(self) -> RunVerdict:
        """What the run says about its kernel."""
        if self.not_built:
            return RunVerdict.NOT_BUILT
        if self.missing:
            return RunVerdict.ERROR
        return verdict_of(self.cases, self.contradictions)

    @property
    def missing(self) -> int:
        """How many selected cases have no result."""
        return 0 if self.not_built else max(0, self.selected - len(self.cases))

    @property
    def adapted(self) -> tuple[str, ...]:
        """The switches that were measured and differ from the profile, sorted."""
        return tuple(sorted({switch for case in self.cases for switch in case.adapted}))

    @property
    def trouble(self) -> str:
        """What is wrong with the run and is told by no case; "" when nothing is.

        A reader of JUnit or KTAP looks at the cases alone, so this becomes an entry there.
        """
        if self.missing:
            ended = f"{len(self.cases)} of {self.selected} cases ended"
            return f"{ended}: {self.note}" if self.note else ended
        told = any(each.unexpected or each.outcome is Outcome.ERROR for each in self.cases)
        if told or self.verdict in {RunVerdict.PASS, RunVerdict.NOT_BUILT}:
            return ""
        if self.contradictions:
            found = ", ".join(each.switch for each in self.contradictions)
            return f"the kernel contradicts its profile, see --abi: {found}"
        if self.adapted:
            return f"judged with measured switches, not the profile's: {', '.join(self.adapted)}"
        return self.note.strip() or "no case was judged"

    def count(self, *outcomes: Outcome) -> int:
        """How many cases ended with one of these outcomes."""
        return sum(case.outcome in outcomes for case in self.cases)

    def to_json(self) -> dict[str, Any]:
        """The document of results.json, schema 1.

        A self-check has no verdict and no counts, so that it cannot be mistaken for a run.
        """
        summary: dict[str, Any]
        if self.head.self_check:
            summary = {"self_check": self_check_of(self)}
        else:
            counts = {outcome.value: self.count(outcome) for outcome in Outcome}
            summary = {"verdict": self.verdict.value, **counts}
        summary |= {"selected": self.selected, "duration_s": self.duration_s, "note": self.note}
        summary["contradictions"] = encode(self.contradictions)
        return {
            **encode(self.head),
            "cases": [case.to_json() for case in self.cases],
            "summary": summary,
        }

    @classmethod
    def from_json(cls, data: object, where: str = "run") -> RunRecord:
        """Read what ``to_json`` wrote.  Raises SchemaError naming the place.

        The verdict is computed from the cases again; a summary that says something else
        is refused, since one of the two was edited.
        """
        head = decode(RunHead, data, where)
        body = decode(_Body, data, where)
        said = body.summary.verdict
        record = cls(
            head,
            body.cases,
            body.summary.selected,
            body.summary.duration_s,
            body.summary.note,
            not_built=said is RunVerdict.NOT_BUILT,
            contradictions=body.summary.contradictions,
        )
        if not head.self_check and record.verdict is not said:
            raise SchemaError(f"{where}.summary", f"says {said}, the cases say {record.verdict}")
        return record


@dataclass(frozen=True, slots=True)
class _Summary:
    selected: int
    duration_s: float
    note: str
    verdict: RunVerdict | None = None
    contradictions: tuple[Contradiction, ...] = ()


@dataclass(frozen=True, slots=True)
class _Body:
    """What the JSON of a run holds besides its head."""

    cases: tuple[CaseResult, ...]
    summary: _Summary


def named(records: Iterable[RunRecord]) -> list[tuple[str, RunRecord]]:
    """Runs and a name for each: that of its kernel, numbered from the second one on."""
    found: dict[str, RunRecord] = {}
    for record in records:
        kernel = record.head.kernel.id
        names = itertools.chain([kernel], (f"{kernel}-{n}" for n in itertools.count(2)))
        found[next(name for name in names if name not in found)] = record
    return list(found.items())


def self_check_of(record: RunRecord) -> str:
    """``ok`` or ``failed``: the only thing a self-check says."""
    return "ok" if record.verdict is RunVerdict.PASS else "failed"
