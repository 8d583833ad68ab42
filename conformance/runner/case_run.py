"""One run of one case in lock step with the model, and its result."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec.structs import replace

from conformance import ops
from conformance.abi.adapted_profile import AdaptedProfile
from conformance.cases.case import Case
from conformance.client.executor import Executor
from conformance.client.lockstep import Lockstep, Step, result_text
from conformance.client.recording import record_within_limits
from conformance.client.user_events import UserEvents
from conformance.listing.listing import Listing
from conformance.model.errors import ModelError
from conformance.model.machine import Model
from conformance.model.state.process import Process
from conformance.ops.calls import Call
from conformance.ops.digest import digest_and_course
from conformance.results.case_result import CaseResult, Evidence, Mismatch
from conformance.results.judging import lost_guest
from conformance.results.outcome import Blame, Outcome
from conformance.results.recorded_program import RecordedStep
from conformance.runner.assertion_text import FailedAssertion, failed_assertion
from conformance.runner.case_location import described
from conformance.runner.guest_executor import GuestExecutor
from conformance.runner.judgement import (
    Explain,
    Judgement,
    ModuleRefused,
    NotInitialised,
    NotJudged,
)
from conformance.runner.leftovers import Leftovers, makes_instance, of_program
from conformance.runner.literal_values import compared_values
from conformance.runner.process_pool import Enablers, Returned
from host.kernel_reports import ReportKind

_AGREEMENT = "the model agrees with the kernel: check the case, then the model"


class CaseRun:
    """One run of one case.

    ``mark`` is the position of the console when the program began, -1 before.
    """

    def __init__(self) -> None:
        self.mark = -1
        #: Whether the guest was lost, whatever the result is.
        self.lost_guest = False
        self._started = time.monotonic()
        self._lockstep: Lockstep | None = None
        self._executor: Executor | None = None
        self._user_events: UserEvents | None = None
        self._spec = ""
        self._serial = 0

    def start(
        self, model: Model, executor: Executor, serial: int, *, ahead: bool = False
    ) -> UserEvents:
        """Start the clock and hand out the system that the case uses; ``ahead``: see Lockstep."""
        self._started = time.monotonic()
        self._serial = serial
        self._executor = executor
        self._lockstep = Lockstep(model, executor, ahead=ahead)
        self._user_events = UserEvents(self._lockstep, serial)
        return self._user_events

    def catch_up(self, error: BaseException | None) -> BaseException | None:
        """Perform what is left of the program of a case that raised ``error``.

        Returns what that raises, else ``error``.
        """
        try:
            if self._lockstep is not None:
                self._lockstep.catch_up()
        except Exception as later:
            return later
        return error

    @property
    def misled(self) -> bool:
        """See Lockstep."""
        return self._lockstep is not None and self._lockstep.misled

    @property
    def _model(self) -> Model:
        assert self._lockstep is not None, "the case has not started"
        return self._lockstep.model

    @property
    def _steps(self) -> list[Step]:
        return self._lockstep.steps if self._lockstep else []

    @property
    def program(self) -> list[ops.Operation]:
        """The operations so far."""
        return [step.operation for step in self._steps]

    def listed(self) -> tuple[str, ...]:
        """The program as text."""
        lost = self._lockstep.unanswered if self._lockstep else ()
        return tuple(Listing(self._steps, lost).lines)

    def _recorded(self) -> tuple[tuple[RecordedStep, ...], str]:
        return record_within_limits(self._lockstep) if self._lockstep else ((), "")

    def evidence(self) -> Evidence:
        """The program as text and as data, and what decides the case."""
        program, left_out = self._recorded()
        return Evidence(self.listed(), spec=self._spec, program=program, left_out=left_out)

    @property
    def multi_id(self) -> int:
        """The number the next multi-format event will get."""
        return self._model.world.table.multi_id

    def give_back_processes(self, then: Sequence[Call]) -> Returned:
        """Give back the processes of a program that passed.

        One of them performs the calls ``then``; there are no results without such a process.
        """
        if not isinstance(self._executor, GuestExecutor):
            return Returned([])
        processes = self._model.world.processes.items()
        enablers = {actor: _enablers_of(process) for actor, process in processes}
        return self._executor.give_back(enablers, then)

    def leftovers(self, *, passed: bool) -> Leftovers:
        """What the case may have left changed in its guest."""
        return of_program(self.program, self._model.world if passed else None)

    @property
    def leaks_inodes(self) -> bool:
        """Whether an instance of the program keeps tracefs writable until reboot."""
        program = self.program
        return makes_instance(program) and not self._model.profile.fixed("tracefs-inode-leak")

    def judge(
        self, case: Case, case_id: str, error: BaseException | None, explain: Explain
    ) -> CaseResult:
        """The result by the answers of the kernel alone, its console left aside."""
        self._spec = case.spec
        if isinstance(error, NotJudged):
            return self._skipped(case, case_id, error)
        trouble = explain(error, self.mark >= 0) if error is not None else None
        mismatches = self._mismatches()
        if trouble is not None:
            result = self.result(case, case_id, trouble, mismatches)
            self.lost_guest = lost_guest(result)
            if not mismatches or not _leaves_answers_valid(trouble):
                return result
            reason = f"{mismatches[0]}; then: {trouble.reason}"
            judgement = replace(trouble, outcome=Outcome.FAIL, blame=Blame.KERNEL, reason=reason)
        elif mismatches:
            judgement = Judgement(Outcome.FAIL, Blame.KERNEL, str(mismatches[0]))
        elif isinstance(error, AssertionError):
            mismatch, reason = self._contradicted_literal(error)
            mismatches, judgement = (mismatch,), Judgement(Outcome.FAIL, Blame.CASE, reason)
        else:
            judgement = _judgement_of(error)
            if isinstance(error, NotInitialised):
                mismatches = (error.mismatch,)
        return self.result(case, case_id, judgement, mismatches)

    def _contradicted_literal(self, error: AssertionError) -> tuple[Mismatch, str]:
        """The mismatch, and the reason, where both kernel and model contradict a literal."""
        found = failed_assertion(error) or FailedAssertion("", str(error))
        values = None
        if found.relation:
            values = compared_values(error, self._model.profile, self._steps, self._serial)
        if values is not None:
            expected = found.relation.format(values.right)
            reason = f"{found.place}: the case expects {expected}, the kernel gave {values.left}"
            mismatch = Mismatch(0, "literal", expected, values.left)
            return mismatch, f"{reason} ({_AGREEMENT})"
        lines = found.text.splitlines() or ["an assertion fails"]
        place = f"{found.place}: " if found.place else ""
        mismatch = Mismatch(0, "literal", "the literal of the case", lines[0])
        return mismatch, f"{place}{lines[0]} ({_AGREEMENT})"

    def _mismatches(self) -> tuple[Mismatch, ...]:
        wrong = [(step, found) for step in self._steps for found in step.differences]
        if not wrong:
            return ()
        listing = Listing(self._steps)
        return tuple(listing.mismatch(step, found) for step, found in wrong)

    def _skipped(self, case: Case, case_id: str, why: NotJudged) -> CaseResult:
        skipped = self.result(case, case_id, Judgement(Outcome.SKIP, Blame.NONE, why.code.value))
        evidence = Evidence(docs=str(why))
        return replace(skipped, adapted=why.adapted, evidence=evidence, digest=None, course="")

    def result(
        self,
        case: Case,
        case_id: str,
        judgement: Judgement,
        mismatches: tuple[Mismatch, ...] = (),
    ) -> CaseResult:
        """The record of this run with a judgement."""
        bugs = self._user_events.bugs | self._model.bugs if self._user_events else frozenset()
        passed = judgement.outcome is Outcome.PASS
        wrong = [step for step in self._steps if step.differences]
        program, left_out = ((), "") if passed and not bugs else self._recorded()
        evidence = Evidence(
            steps=() if passed else self.listed(),
            model="\n".join(f"step {s.number}: {_allowed(s)}" for s in wrong),
            kernel="\n".join(f"step {s.number}: {result_text(s.seen)}" for s in wrong),
            docs=case.doc,
            spec=case.spec,
            console=judgement.console,
            program=program,
            left_out=left_out,
        )
        identity, course = digest_and_course(self.program)
        profile = self._user_events.profile if self._user_events else None
        adapted = profile.used if isinstance(profile, AdaptedProfile) else ()
        return CaseResult(
            id=case_id,
            surface=case.surface,
            tier=case.tier.value,
            outcome=judgement.outcome,
            blame=judgement.blame,
            reason=judgement.reason,
            duration_s=round(time.monotonic() - self._started, 4),
            adapted=tuple(sorted(adapted)),
            mismatches=mismatches,
            evidence=evidence,
            digest=identity,
            course=course,
            reports=judgement.reports,
            sentence=case.sentence,
            level=case.level,
            bug=" ".join(sorted(bugs)),
        )


def _leaves_answers_valid(trouble: Judgement) -> bool:
    """Whether earlier answers of the kernel still count: not without memory."""
    starved = any(each.kind == ReportKind.OUT_OF_MEMORY for each in trouble.reports)
    return trouble.outcome is Outcome.ERROR and not starved


def _enablers_of(process: Process) -> Enablers:
    enablers = process.enablers or []
    places = dict.fromkeys((enabler.address, enabler.bit) for enabler in enablers)
    settled = not any(enabler.faulting or enabler.freeing for enabler in enablers)
    return Enablers(tuple(places), settled)


def _judgement_of(error: BaseException | None) -> Judgement:
    """The judgement of a case in which kernel and model agree throughout."""
    match error:
        case None:
            return Judgement(Outcome.PASS, Blame.NONE, "")
        case ModuleRefused():
            # A kernel may refuse modules: neither user_events nor a case is at fault.
            return Judgement(Outcome.ERROR, Blame.KERNEL, str(error))
        case NotInitialised():
            return Judgement(Outcome.FAIL, Blame.KERNEL, str(error))
        case ModelError():
            return Judgement(Outcome.ERROR, Blame.MODEL, str(error))
    return Judgement(Outcome.ERROR, Blame.CASE, described(error))


def _allowed(step: Step) -> str:
    """The answers that the model allows at a step."""
    return " or ".join(dict.fromkeys(result_text(answer) for answer in step.allowed))
