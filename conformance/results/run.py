"""A whole run as data: kernel, host, and the result of each case."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins

from conformance.results.case_result import MODULE_SURFACE, CaseResult
from conformance.results.contradiction import Contradiction
from conformance.results.frozen import FrozenShare
from conformance.results.json_codec import SCHEMA, SchemaError, decode
from conformance.results.judging import verdict_of
from conformance.results.outcome import Level, Outcome, RunVerdict, SkipReason, failing
from conformance.results.shard import Shard

ALWAYS_SHOWN = ("passed", "known bugs", "failed")
"""Words of a tally that are shown even if zero."""
SELF_CHECK = "a self-check of the suite: no kernel was judged"
"""What the exports of a self-check say of the run as a whole."""
# Kernels that change under their name: patched ones, trees, images.
_CHANGING = re.compile(r"\+|^tree-|^image-")
# Words of `uevt run` that a run of a single case does without.
_OF_A_WHOLE_RUN = (
    *("-k=", "--only=", "--frozen=", "--tier=", "--isolation=need", "--shuffle=", "--repeat="),
    *("--exit-style=", "--require", "--shard="),
)


class PatchFacts(Struct, frozen=True):
    """A patch of the kernel's source; ``sha256`` is that of its text."""

    name: str
    sha256: str
    text: str


class KernelFacts(Struct, frozen=True):
    """The kernel under test; ``profile`` is the ABI that it is judged by.

    ``build`` identifies the build: a digest of everything that went into it, patches included, or
    of the image file.  ``patches`` are in order of application.
    """

    id: str
    release: str
    profile: str
    variant: str | None = None
    config_sha256: str | None = None
    source: str | None = None
    build: str | None = None
    patches: tuple[PatchFacts, ...] = ()


class RunHead(Struct, frozen=True, kw_only=True):
    """The facts known before the first case; also the first line of a journal.

    ``host`` must have ``accel`` (kvm, tcg or none); ``accel_reason`` says why it was chosen.
    ``started`` is a UTC time such as ``2026-11-20T17:44:00Z``; ``suite`` the revision of this
    suite, ``suite_sha256`` the digest of its files; ``asked`` are the options of `uevt run` that
    repeat this run; ``tier`` and ``selection``, the expression of -k, chose its cases; deviations
    of level ``fail_on`` or stronger make it FAIL.  In a ``self_check`` the model replaces the
    kernel: it tests the suite and no kernel.  Raises ValueError for another schema, or a missing
    accelerator.
    """

    schema: int = SCHEMA
    kernel: KernelFacts
    host: dict[str, str]
    started: str
    suite: str
    suite_sha256: str | None = None
    asked: tuple[str, ...] = ()
    tier: str = ""
    selection: str = ""
    self_check: bool = False
    fail_on: Level = Level.CONTRACT

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            what = f"schema {self.schema} is of another version of uevt"
            raise ValueError(f"{what}: expected {SCHEMA}")
        if "accel" not in self.host:
            raise ValueError("host.accel is missing")

    def fails(self, outcome: Outcome) -> bool:
        """Whether one case with this outcome keeps the run from PASS."""
        return outcome is Outcome.ERROR or outcome in failing(self.fail_on)

    @property
    def command(self) -> str:
        """The command that judges the kernel as this run did, "" if the run did not record it."""
        words = ["uevt", "run"] if self.asked else []
        for word in self.asked:
            if not word.startswith(_OF_A_WHOLE_RUN):
                name, _, value = word.partition("=")
                words += [name, value] if value and not value.startswith("-") else [word]
        return shlex.join(words)

    def command_for(self, case: CaseResult) -> str:
        """The command that runs one case as this run did, "" if there is none."""
        if not self.asked or case.surface == MODULE_SURFACE:
            return ""
        tier = " --tier full" if case.tier == "full" else ""
        return f"{self.command}{tier} -k {case.aftermath_of or case.id.removesuffix('.probe')}"


class Functions(Struct, frozen=True):
    """How many functions of cases there are, and how many apply to the profile of a run.

    ``variants`` are the cases that those make and that -k matches, of both tiers; 0 if unknown.
    """

    applying: int
    all: int
    variants: int = 0


class RunRecord(Struct, frozen=True):
    """A run that ended, in any way.

    A run with fewer results than ``selected`` cases has no verdict.  ``note`` is one line about the
    whole run, such as why it ended early.  ``not_built`` means that the kernel has no user_events
    and no case was judged; ``contradictions`` are the switches of the profile that the kernel
    contradicts; ``frozen`` is the share of the list of --frozen.  ``shards`` has one item for a run
    of --shard, all of them for a merged run, none for others.
    """

    head: RunHead
    cases: tuple[CaseResult, ...]
    selected: int
    duration_s: float
    note: str = ""
    not_built: bool = False
    contradictions: tuple[Contradiction, ...] = ()
    functions: Functions | None = None
    frozen: FrozenShare | None = None
    shards: tuple[Shard, ...] = ()

    @property
    def verdict(self) -> RunVerdict:
        """The verdict about the kernel."""
        if self.not_built:
            return RunVerdict.NOT_BUILT
        verdict = verdict_of(self.cases, self.contradictions, self.head.fail_on)
        return RunVerdict.ERROR if self.missing and verdict is RunVerdict.PASS else verdict

    @property
    def failures(self) -> list[CaseResult]:
        """The results that keep the run from PASS."""
        return [case for case in self.cases if self.head.fails(case.outcome)]

    @property
    def missing(self) -> int:
        """How many selected cases have no result."""
        return 0 if self.not_built else max(0, self.selected - len(self.cases))

    @property
    def all_skipped(self) -> bool:
        """Whether every selected case was skipped."""
        skipped = self.count(Outcome.SKIP)
        return bool(skipped) and skipped == len(self.cases) and not self.missing

    @property
    def contradicted(self) -> tuple[Contradiction, ...]:
        """The contradictions that are deviations: not those of fixed bugs."""
        return tuple(each for each in self.contradictions if each.outcome is not Outcome.FIXED)

    @property
    def adapted(self) -> tuple[str, ...]:
        """The switches that were measured and differ from the profile, sorted."""
        return tuple(sorted({switch for case in self.cases for switch in case.adapted}))

    @property
    def trouble(self) -> str:
        """A problem of the run that no case shows, "" if there is none.

        Readers of JUnit and KTAP see cases only, so exporters add it as an entry.
        """
        if self.missing:
            ended = f"{len(self.cases)} of {self.selected} cases ended"
            return f"{ended}: {self.note}" if self.note else ended
        if self.failures or self.verdict in {RunVerdict.PASS, RunVerdict.NOT_BUILT}:
            return ""
        found = [each.switch for each in self.contradictions if self.head.fails(each.outcome)]
        if found:
            return f"the kernel contradicts its profile in: {', '.join(found)}; see --abi"
        return self.note.strip() or "no case was judged"

    @property
    def not_built_reason(self) -> str:
        """Why no case of a kernel without user_events was judged."""
        return self.note.strip() or SkipReason.NOT_BUILT.sentence

    @property
    def judged_nothing(self) -> str:
        """Why no kernel with user_events was judged, "" if one was or the run is in trouble."""
        if self.not_built:
            return self.not_built_reason
        return SELF_CHECK if self.head.self_check and not self.trouble else ""

    @property
    def share(self) -> str:
        """How much of the full tier, of a frozen list or of all shards a run selected."""
        shares = []
        quick = "--tier=quick" in self.head.asked and len(self.shards) != 1
        if quick and self.functions is not None and self.functions.variants:
            selected = self.selected - sum(bool(case.aftermath_of) for case in self.cases)
            shares.append(f"quick: {selected:,} of {self.functions.variants:,}")
        if len(self.shards) == 1:
            shard = self.shards[0]
            shares.append(f"shard {shard.part}: {len(shard.cases):,} of {shard.whole:,}")
        if self.frozen is not None:
            of = f"{self.frozen.judged:,} of {self.frozen.listed:,}"
            shares.append(f"list {self.frozen.list}: {of}")
        return ", ".join(shares)

    @property
    def tally(self) -> dict[str, int]:
        """The number of cases in the words of reports; only ALWAYS_SHOWN is shown if zero.

        What failed afterwards is what the kernel kept of a case, or did after it.
        """
        fails = failing(self.head.fail_on)
        failed = [case for case in self.cases if case.outcome in fails]
        return {
            "passed": self.count(Outcome.PASS),
            "known bugs": self.count(Outcome.XFAIL),
            "fixed": self.count(Outcome.FIXED),
            "changed": self.count(*{Outcome.CHANGED} - fails),
            "noted": self.count(*{Outcome.NOTE} - fails),
            "failed": sum(not case.aftermath_of for case in failed),
            "failed afterwards": sum(bool(case.aftermath_of) for case in failed),
            "skipped": self.count(Outcome.SKIP),
            "undecided": self.count(Outcome.ERROR),
            "not run": self.missing,
        }

    @property
    def counts(self) -> list[str]:
        """The tally in words, and the contradicted switches that fail the run without a case."""
        tally = self.tally
        if not tally["failed"] and tally["failed afterwards"]:
            del tally["failed"]
        words = [
            f"{number} {word[:-1] if number == 1 and word == 'known bugs' else word}"
            for word, number in tally.items()
            if number or word in ALWAYS_SHOWN
        ]
        failed = {case.id for case in self.failures}
        switches = [each for each in self.contradictions if self.head.fails(each.outcome)]
        number = sum(each.case not in failed for each in switches)
        return [*words, f"{number} contradicted"] if number else words

    def count(self, *outcomes: Outcome) -> int:
        """How many cases ended with one of these outcomes."""
        return sum(case.outcome in outcomes for case in self.cases)

    def to_json(self) -> dict[str, Any]:
        """The document of results.json, schema 1.

        A self-check has neither verdict nor counts, so that it cannot be mistaken for a run.
        """
        summary: dict[str, Any]
        if self.head.self_check:
            summary = {"self_check": self_check_of(self)}
        else:
            counts = {outcome.value: self.count(outcome) for outcome in Outcome}
            summary = {"verdict": self.verdict.value, **counts}
        summary |= {"selected": self.selected, "duration_s": self.duration_s, "note": self.note}
        summary["contradictions"] = to_builtins(self.contradictions)
        for name in ("functions", "frozen", "shards"):
            if found := getattr(self, name):
                summary[name] = to_builtins(found)
        return {**to_builtins(self.head), "cases": to_builtins(self.cases), "summary": summary}

    @classmethod
    def from_json(cls, data: object, where: str = "run") -> RunRecord:
        """Read the output of ``to_json``.  Raises SchemaError naming the place."""
        if isinstance(data, Mapping) and "schema" not in data:
            raise SchemaError(f"{where}.schema", "is missing")
        head = decode(RunHead, data, where)
        return cls.with_summary(head, decode(_Results, data, where).cases, data, where)

    @classmethod
    def with_summary(
        cls, head: RunHead, cases: tuple[CaseResult, ...], data: object, where: str = "run"
    ) -> RunRecord:
        """The run of these results, and of the summary in a document.

        The verdict is computed from the cases again; a different verdict in the summary is refused,
        since the file was edited.  Raises SchemaError.
        """
        summary = decode(_Body, data, where).summary
        found = {name: getattr(summary, name) for name in summary.__struct_fields__}
        verdict = found.pop("verdict")
        record = cls(head, cases, not_built=verdict is RunVerdict.NOT_BUILT, **found)
        if not head.self_check and record.verdict is not verdict:
            what = f"has verdict {verdict}, but the cases give {record.verdict}"
            raise SchemaError(f"{where}.summary", what)
        return record


class _Summary(Struct, frozen=True):
    selected: Annotated[int, Meta(ge=0)]
    duration_s: Annotated[float, Meta(ge=0)]
    note: str
    verdict: RunVerdict | None = None
    contradictions: tuple[Contradiction, ...] = ()
    functions: Functions | None = None
    frozen: FrozenShare | None = None
    shards: tuple[Shard, ...] = ()


class _Results(Struct, frozen=True):
    """The cases of the document of a run."""

    cases: tuple[CaseResult, ...]


class _Body(Struct, frozen=True):
    """The document of a run without head and cases."""

    summary: _Summary


def same_kernel(one: KernelFacts, other: KernelFacts) -> bool:
    """Whether two runs judged the same build by the same ABI.

    If the build is not recorded, this is known only for kernels that do not change under their
    name.
    """
    facts = [(each.id, each.release, each.profile, each.source) for each in (one, other)]
    if facts[0] != facts[1] or one.config_sha256 != other.config_sha256:
        return False
    if one.build is None or other.build is None:
        return _CHANGING.search(one.id) is None
    return one.build == other.build


def with_names(records: Iterable[RunRecord]) -> list[tuple[str, RunRecord]]:
    """Runs with unique names: the kernel's id, numbered from the second run on."""
    found: dict[str, RunRecord] = {}
    for record in records:
        kernel = record.head.kernel.id
        names = itertools.chain([kernel], (f"{kernel}-{n}" for n in itertools.count(2)))
        found[next(name for name in names if name not in found)] = record
    return list(found.items())


def self_check_of(record: RunRecord) -> str:
    """``ok`` or ``failed``: the only result of a self-check."""
    return "ok" if record.verdict is RunVerdict.PASS else "failed"
