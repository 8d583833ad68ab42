"""Running cases: which system a case gets, how its end is judged, what it leaves.

The runner does not know where guests come from: a supply hands them out, and an
explanation turns whatever a guest raised into an outcome.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from conformance.abi.profiles import Profile
from conformance.cases.declare import Case, Isolation
from conformance.leftovers import ACTOR, Janitor
from conformance.model.errors import ModelError
from conformance.model.events import DEFAULT_MAX_EVENTS
from conformance.model.machine import Model
from conformance.outcome import Blame, CaseResult, Evidence, Mismatch, Outcome, lost
from conformance.program.codec import digest
from conformance.sut.crew import Crew
from conformance.sut.executor import Executor, ModelExecutor
from conformance.sut.guest import Channel, GuestExecutor
from conformance.sut.lockstep import Lockstep, Step, shown
from conformance.sut.user_events import UserEvents

# Seconds of an idle machine in which the leftovers of earlier cases must be gone.
_CLEAN = 5.0


class Guest(Channel, Protocol):
    """A booted kernel with actors, and a console that is evidence."""

    def mark(self, text: str) -> int:
        """Write a line to the guest's log, as proof that it answers; where it is there."""
        ...

    def console(self, since: int) -> str:
        """What the console said since a mark."""
        ...

    def splats(self, since: int) -> list[str]:
        """Warnings and worse on the console since a mark, a line each."""
        ...

    def pristine(self) -> None:
        """Become a kernel in which nothing has happened."""
        ...


@dataclass(frozen=True, slots=True)
class Trouble:
    """What an exception says about a case: outcome, whose fault, why, console slice."""

    outcome: Outcome
    blame: Blame
    reason: str
    console: str = ""


Explain = Callable[[BaseException, bool], Trouble | None]
Supply = Callable[[], Guest]


class NotBuilt(Exception):
    """The kernel under test has no user_events: nothing can be judged."""


class Runner:
    """Runs cases one after the other on one guest, or on the model when there is none."""

    def __init__(self, profile: Profile, supply: Supply | None, explain: Explain) -> None:
        self.profile = profile
        self._supply = supply
        self._explain = explain
        self._guest: Guest | None = None
        self._janitor: Janitor | None = None
        self._crew: Crew | None = None
        # The system-wide counter of multi-format events; None where a case went astray.
        self._multi_id: int | None = 0
        self._serial = 0
        self._attempt: _Attempt | None = None
        # The guest did not outlive the last case.
        self._lost = False
        self._not_built: NotBuilt | None = None

    def begin(self, case: Case, case_id: str) -> UserEvents:
        """A system for one case.

        Raises NotBuilt, and whatever the guest raises when it cannot be had.
        """
        self._serial += 1
        model = Model(self.profile)
        self._attempt = attempt = _Attempt(model, time.monotonic())
        if self._supply is None:
            attempt.start(ModelExecutor(Model(self.profile)), self._serial)
        else:
            guest, janitor = self._ready(self._supply)
            if case.isolation in (Isolation.GLOBAL, Isolation.FATAL) and not janitor.wait_until_new(
                _CLEAN
            ):
                guest.pristine()
                guest, janitor = self._ready(self._supply, renewed=True)
            if self._multi_id is None and "multi_format" in case.needs:
                self._multi_id = janitor.next_multi_id()
            model.world.table.multi_id = self._multi_id or 0
            attempt.mark = guest.mark(case_id)
            assert self._crew is not None
            attempt.executor = GuestExecutor(guest, self._crew)
            attempt.start(attempt.executor, self._serial)
        assert attempt.user_events is not None
        return attempt.user_events

    def _ready(self, supply: Supply, *, renewed: bool = False) -> tuple[Guest, Janitor]:
        if self._not_built is not None:
            raise self._not_built
        if self._guest is None:
            self._guest = supply()
            renewed = True
        elif self._lost:
            self._guest.pristine()
            renewed = True
        self._lost = False
        if renewed or self._janitor is None:
            self._janitor = Janitor(self._guest)
            self._crew = Crew(self._guest, standing=ACTOR)
            self._multi_id = 0
            if not self._janitor.has_user_events():
                self._not_built = NotBuilt("this kernel has no user_events_status")
                raise self._not_built
        return self._guest, self._janitor

    def end(self, case: Case, case_id: str, error: BaseException | None) -> CaseResult:
        """Judge how a case ended and put its system in order.

        ``error`` is what the case raised, if anything.
        """
        attempt = self._attempt
        assert attempt is not None, "a case ends that never began"
        self._attempt = None
        judged = attempt.judge(case, case_id, error, self._explain)
        if lost(judged):
            self._lost = True
            return judged
        if self._guest is None:
            return judged
        try:
            return self._tidied(self._guest, attempt, judged)
        except Exception as trouble:
            found = self._explain(trouble, True)
            if found is None:
                raise
            self._lost = True
            return attempt.result(case, case_id, found)

    def _tidied(self, guest: Guest, attempt: _Attempt, judged: CaseResult) -> CaseResult:
        """Put the guest in order, and look at what the kernel said meanwhile."""
        if judged.outcome is Outcome.PASS:
            attempt.dismiss()
            if self._multi_id is not None:
                self._multi_id = attempt.multi_id
            clean, cleared = not attempt.left_things(), not attempt.recorded()
        else:
            # Where the kernel left the model's path nobody knows what there is.
            guest.call("", [["reset"]])
            self._janitor = Janitor(guest)
            self._crew = Crew(guest, standing=ACTOR)
            self._multi_id = None
            clean = cleared = False
        assert self._janitor is not None
        if not clean:
            self._janitor.tidy()
        if not cleared:
            self._janitor.clear_trace()
        splats = guest.splats(attempt.mark)
        return attempt.with_splats(judged, splats, guest.console(attempt.mark))


class _Attempt:
    """One run of one case."""

    def __init__(self, model: Model, started: float) -> None:
        self._model = model
        self._started = started
        self._lockstep: Lockstep | None = None
        self.user_events: UserEvents | None = None
        self.executor: GuestExecutor | None = None
        self.mark = -1

    def start(self, executor: Executor, serial: int) -> None:
        """The system is there: programs can run from now on."""
        self._lockstep = Lockstep(self._model, executor)
        self.user_events = UserEvents(self._lockstep, serial)

    @property
    def _steps(self) -> list[Step]:
        return self._lockstep.steps if self._lockstep else []

    @property
    def multi_id(self) -> int:
        """The number the next multi-format event will get."""
        return self._model.world.table.multi_id

    def dismiss(self) -> None:
        """Give back the processes of a program that went as it should."""
        if self.executor is not None:
            processes = self._model.world.processes
            self.executor.dismiss(
                {
                    actor: [(enabler.address, enabler.bit) for enabler in process.enablers or []]
                    for actor, process in processes.items()
                }
            )

    def left_things(self) -> bool:
        """Whether anything stays behind that does not go away by itself."""
        world = self._model.world
        lasting = any(event.self_reference or event.tracers for event in world.table.events)
        shared = not world.tracing_on or world.table.maximum != DEFAULT_MAX_EVENTS
        return lasting or shared

    def recorded(self) -> bool:
        """Whether the trace buffer may hold something."""
        return bool(self._model.world.records)

    def judge(
        self, case: Case, case_id: str, error: BaseException | None, explain: Explain
    ) -> CaseResult:
        """What the case showed, its surroundings left aside."""
        trouble = explain(error, self.mark >= 0) if error is not None else None
        if trouble is not None:
            return self.result(case, case_id, trouble)
        mismatches = self._mismatches()
        if mismatches:
            reason = str(mismatches[0])
            found = Trouble(Outcome.FAIL, Blame.KERNEL, reason)
        elif error is None:
            found = Trouble(Outcome.PASS, Blame.NONE, "")
        elif isinstance(error, AssertionError):
            # Model and kernel agree, and both contradict a literal of the case.
            literal = str(error).strip() or "a literal of the case is contradicted"
            mismatches = (Mismatch(0, "literal", "what the case says", literal),)
            found = Trouble(Outcome.FAIL, Blame.MODEL, literal.splitlines()[0])
        elif isinstance(error, ModelError):
            found = Trouble(Outcome.ERROR, Blame.MODEL, str(error))
        else:
            found = Trouble(Outcome.ERROR, Blame.CASE, f"{type(error).__name__}: {error}")
        return self.result(case, case_id, found, mismatches)

    def _mismatches(self) -> tuple[Mismatch, ...]:
        return tuple(
            Mismatch(step.number, found.field, found.allowed, found.observed)
            for step in self._steps
            for found in step.differences
        )

    def result(
        self,
        case: Case,
        case_id: str,
        trouble: Trouble,
        mismatches: tuple[Mismatch, ...] = (),
    ) -> CaseResult:
        """The record of this run with a given end."""
        wrong = [step for step in self._steps if step.differences]
        evidence = Evidence(
            steps=() if trouble.outcome is Outcome.PASS else tuple(s.text for s in self._steps),
            model="\n".join(f"step {s.number}: {_allowed(s)}" for s in wrong),
            kernel="\n".join(f"step {s.number}: {shown(s.seen)}" for s in wrong),
            docs=f"{case.doc} (decided by {case.spec})",
            console=trouble.console,
        )
        return CaseResult(
            id=case_id,
            surface=case.surface,
            tier=case.tier.value,
            outcome=trouble.outcome,
            blame=trouble.blame,
            reason=trouble.reason,
            duration_s=round(time.monotonic() - self._started, 4),
            mismatches=mismatches,
            evidence=evidence,
            digest=digest(step.operation for step in self._steps),
        )

    def with_splats(self, judged: CaseResult, splats: list[str], console: str) -> CaseResult:
        """The kernel complained on its console: a case cannot pass then."""
        if not splats:
            return judged
        complaints = tuple(Mismatch(0, "console", "no complaint", line) for line in splats)
        return replace(
            judged,
            outcome=Outcome.FAIL,
            blame=Blame.KERNEL,
            reason=judged.reason or f"the kernel complained: {splats[0]}",
            mismatches=judged.mismatches + complaints,
            evidence=replace(judged.evidence, console=console),
        )


def _allowed(step: Step) -> str:
    """What the model allows at a step."""
    return " or ".join(dict.fromkeys(shown(answer) for answer in step.allowed))
