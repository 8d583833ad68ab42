"""All variants of all cases, and running one without pytest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from conformance.abi.profile import Profile, profile_for
from conformance.cases import case as declare
from conformance.cases.variants import Variant, all_variants, variants_of
from conformance.client.executor import Executor, ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.results.case_result import CaseResult
from conformance.runner.runner import Runner

__all__ = [
    "CASES",
    "PROFILE",
    "Attempt",
    "Outcome",
    "Variant",
    "all_variants",
    "client",
    "honest",
    "judged",
    "variants_of",
]
CASES = Path(declare.__file__).parent
PROFILE = profile_for("6.12.117")


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
    ahead: bool = False
    model: Model | None = None
    lockstep: Lockstep = field(init=False)

    def __post_init__(self) -> None:
        model = self.model or Model(self.profile)
        self.lockstep = Lockstep(model, self.executor, ahead=self.ahead)

    def run(self, variant: Variant) -> Outcome:
        """Run a variant to its end."""
        try:
            variant.function(UserEvents(self.lockstep, serial=1), **variant.arguments)
            self.lockstep.catch_up()
        except Exception as error:  # whatever a case raises is a result here
            return Outcome(self.lockstep, error)
        return Outcome(self.lockstep)


def honest(variant: Variant, *, eager: bool = False, profile: Profile = PROFILE) -> Outcome:
    """Run a variant on the model instead of a kernel."""
    return Attempt(ModelExecutor(Model(profile), eager=eager), profile).run(variant)


def client(
    model: Model | None = None, kernel: Executor | None = None, *, ahead: bool = False
) -> UserEvents:
    """A client of a model in lock step with a kernel, by default another model."""
    model = model or Model(PROFILE)
    kernel = kernel or ModelExecutor(Model(model.profile))
    return UserEvents(Lockstep(model, kernel, ahead=ahead))


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
