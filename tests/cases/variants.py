"""All variants of all cases, and running one without pytest."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.abi.profile import Profile, profile_for
from conformance.cases import case as declare
from conformance.cases.discovery import case_modules
from conformance.client.executor import Executor, ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.results.case_result import CaseResult
from conformance.runner.runner import Runner

CASES = Path(declare.__file__).parent
PROFILE = profile_for("6.12.117")


@dataclass(frozen=True, slots=True)
class Variant:
    """A case with one row of its tables: a run counts it as a case."""

    id: str
    case: declare.Case
    function: Callable[..., None]
    arguments: Mapping[str, Any]
    tier: declare.Tier


@dataclass(slots=True)
class Outcome:
    """A variant's program, and what it raised."""

    lockstep: Lockstep
    raised: BaseException | None = None

    @property
    def accused(self) -> bool:
        """Whether the lock step found a mismatch."""
        return bool(self.lockstep.mismatches)


@dataclass(slots=True)
class Attempt:
    """A model in lock step with an executor."""

    executor: Executor
    profile: Profile = PROFILE
    lockstep: Lockstep = field(init=False)

    def __post_init__(self) -> None:
        self.lockstep = Lockstep(Model(self.profile), self.executor)

    def run(self, variant: Variant) -> Outcome:
        """Run a variant to its end."""
        try:
            variant.function(UserEvents(self.lockstep, serial=1), **variant.arguments)
        except Exception as error:  # whatever a case raises is a result here
            return Outcome(self.lockstep, error)
        return Outcome(self.lockstep)


def honest(variant: Variant, *, eager: bool = False, profile: Profile = PROFILE) -> Outcome:
    """Run a variant on the model instead of a kernel."""
    return Attempt(ModelExecutor(Model(profile), eager=eager), profile).run(variant)


def judged(
    runner: Runner,
    case: declare.Case,
    perform: Callable[[UserEvents], object] = lambda ue: None,
    id: str = "",
) -> CaseResult:
    """Let a runner judge a case, by default one that does nothing."""
    error: Exception | None = None
    try:
        perform(runner.begin(case, id or case.id))
    except Exception as raised:
        error = raised
    return runner.end(case, id or case.id, error)


def all_variants() -> list[Variant]:
    """All variants, in the order of files and functions."""
    return [
        variant
        for module in case_modules()
        for function in vars(module).values()
        if getattr(function, "__module__", None) == module.__name__
        for variant in variants_of(function)
    ]


def variants_of(function: Callable[..., None]) -> Iterator[Variant]:
    """The variants of a function, none if it is no case."""
    case = declare.declared(function)
    if case is None:
        return
    name = declare.VARIANTS_MARK.name
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == name]
    tables = [_rows(*mark.args) for mark in marks]
    for rows in itertools.product(*tables):
        arguments = {name: value for _, row, _ in rows for name, value in row.items()}
        suffix = "-".join(key for key, _, _ in rows)
        name = f"{case.id}.{suffix}" if rows else case.id
        tier = declare.Tier.FULL if any(more for _, _, more in rows) else case.tier
        yield Variant(name, case, function, arguments, tier)


def _rows(names: str, parameters: list[Any]) -> list[tuple[str, dict[str, Any], bool]]:
    """(variant id, arguments, whether it is full) of each row of a table."""
    split = [name.strip() for name in names.split(",")]
    return [
        (row.id, dict(zip(split, row.values, strict=True)), declare.FULL_MARK in row.marks)
        for row in parameters
    ]
