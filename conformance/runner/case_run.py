"""One run of one program in lock step with the model, and what its end says."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.abi.profile import Profile
from conformance.cases.case import Case
from conformance.client.executor import Executor
from conformance.client.lockstep import Lockstep, Step, shown
from conformance.client.user_events import UserEvents
from conformance.model.errors import ModelError
from conformance.model.machine import Model
from conformance.model.state.events import DEFAULT_MAX_EVENTS
from conformance.model.state.trace_instance import TOP
from conformance.ops import syscalls as op
from conformance.ops.digest import identify
from conformance.ops.encode.requests import Call
from conformance.results.case_result import (
    Blame,
    CaseResult,
    Evidence,
    Mismatch,
    Outcome,
    Report,
    SkipReason,
)
from conformance.runner.assertion_text import stated
from conformance.runner.guest_executor import GuestExecutor
from conformance.runner.switch_probes import AdaptedProfile


@dataclass(frozen=True, slots=True)
class Trouble:
    """What an exception says about a case: outcome, whose fault, why, console and reports."""

    outcome: Outcome
    blame: Blame
    reason: str
    console: str = ""
    reports: tuple[Report, ...] = ()


Explain = Callable[[BaseException, bool], Trouble | None]


class NotJudged(Exception):
    """The kernel cannot be judged by a case; ``adapted`` names measured switches to blame."""

    def __init__(self, code: SkipReason, why: str, adapted: tuple[str, ...] = ()) -> None:
        super().__init__(why)
        self.code = code
        self.adapted = adapted


class ModuleRefused(Exception):
    """The kernel did not take a module that was built for it."""


class Attempt:
    """One run of one case.

    ``mark`` is where the console had got to when the program began, -1 before.
    """

    def __init__(self) -> None:
        self.mark = -1
        self._started = time.monotonic()
        self._profile: Profile | None = None
        self._lockstep: Lockstep | None = None
        self._executor: Executor | None = None

    def start(self, model: Model, executor: Executor, serial: int) -> UserEvents:
        """The system is there: programs can run from now on."""
        self._started = time.monotonic()
        self._profile = model.profile
        self._executor = executor
        self._lockstep = Lockstep(model, executor)
        return UserEvents(self._lockstep, serial)

    @property
    def _model(self) -> Model:
        assert self._lockstep is not None, "nothing has run yet"
        return self._lockstep.model

    @property
    def _steps(self) -> list[Step]:
        return self._lockstep.steps if self._lockstep else []

    @property
    def program(self) -> list[op.Operation]:
        """What was performed so far."""
        return [step.operation for step in self._steps]

    @property
    def multi_id(self) -> int:
        """The number the next multi-format event will get."""
        return self._model.world.table.multi_id

    def dismiss(self, then: Sequence[Call]) -> list[dict[str, Any]]:
        """Give back the processes of a program that went as it should.

        One of them performs what is to be done ``then``; the results, none where none could.
        """
        if not isinstance(self._executor, GuestExecutor):
            return []
        processes = self._model.world.processes
        enablers = {
            actor: [(enabler.address, enabler.bit) for enabler in process.enablers or []]
            for actor, process in processes.items()
        }
        return self._executor.dismiss(enablers, then)

    def left_things(self) -> bool:
        """Whether anything stays behind that does not go away by itself."""
        world = self._model.world
        lasting = any(event.self_reference or event.is_enabled for event in world.table.events)
        shared = not world.top.tracing_on or world.table.maximum != DEFAULT_MAX_EVENTS
        filtered = any(event.file.is_used for event in world.table.events)
        probes = world.kprobes or world.eprobes or world.synthetic_events or world.kernel_files
        others = probes or world.top.snapshot is not None or self.forgotten()
        return lasting or shared or filtered or bool(others)

    def left_triggers(self) -> bool:
        """Whether events that stay behind have triggers."""
        return any(event.file.triggers for event in self._model.world.table.events)

    def forgotten(self) -> list[str]:
        """What a case has to put back itself, and did not."""
        world = self._model.world
        found = [f"instance {name}" for name in world.instances if name != TOP]
        found += ["set_event_pid"] * bool(world.top.pids)
        found += ["set_event_notrace_pid"] * bool(world.top.no_pids)
        found += ["tracing_cpumask"] * (not world.top.cpu_traced)
        return found + ["tracefs is read-only"] * world.tracefs_readonly

    def recorded(self) -> bool:
        """Whether the trace buffer may hold something."""
        return bool(self._model.world.top.records)

    def judge(
        self, case: Case, case_id: str, error: BaseException | None, explain: Explain
    ) -> CaseResult:
        """What the case showed, its surroundings left aside."""
        if isinstance(error, NotJudged):
            return self._skipped(case, case_id, error)
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
            told = str(error).strip() or stated(error)
            literal = told or "a literal of the case is contradicted"
            mismatches = (Mismatch(0, "literal", "what the case says", literal),)
            found = Trouble(Outcome.FAIL, Blame.MODEL, literal.splitlines()[0])
        elif isinstance(error, ModuleRefused):
            # It may be right to: that says nothing of user_events, and no case has to change.
            found = Trouble(Outcome.ERROR, Blame.KERNEL, str(error))
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

    def _skipped(self, case: Case, case_id: str, why: NotJudged) -> CaseResult:
        skipped = self.result(case, case_id, Trouble(Outcome.SKIP, Blame.NONE, why.code.value))
        evidence = Evidence(docs=str(why))
        return replace(skipped, adapted=why.adapted, evidence=evidence, digest=None, course="")

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
            docs=case.doc,
            spec=case.spec,
            console=trouble.console,
        )
        identity, course = identify(self.program)
        adapted = self._profile.asked if isinstance(self._profile, AdaptedProfile) else ()
        return CaseResult(
            id=case_id,
            surface=case.surface,
            tier=case.tier.value,
            outcome=trouble.outcome,
            blame=trouble.blame,
            reason=trouble.reason,
            duration_s=round(time.monotonic() - self._started, 4),
            adapted=tuple(sorted(adapted)),
            mismatches=mismatches,
            evidence=evidence,
            digest=identity,
            course=course,
            reports=trouble.reports,
            sentence=case.sentence,
        )


def _allowed(step: Step) -> str:
    """What the model allows at a step."""
    return " or ".join(dict.fromkeys(shown(answer) for answer in step.allowed))
