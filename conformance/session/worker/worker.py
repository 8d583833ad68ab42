"""The process that runs cases: its guest, its runner, one judged result per case."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from conformance.cases.case import Case
from conformance.client.user_events import UserEvents
from conformance.expectations.allowed_reports import Allowed
from conformance.expectations.condition import KernelContext
from conformance.expectations.loader import Expectations
from conformance.ops.digest import digest
from conformance.results.case_result import (
    Blame,
    CaseResult,
    Contradiction,
    Outcome,
    Report,
    lost_guest,
    settle,
)
from conformance.runner.guest_lifecycle import Guest
from conformance.runner.kernel_features import promised_by
from conformance.runner.runner import Runner
from conformance.runner.switch_probes import Probe
from conformance.session.target.target import Target
from conformance.session.time_limits import RunLimit
from conformance.session.worker.blame import explain
from conformance.session.worker.machine_guest import BootAttempts, MachineGuest
from vm.errors import VmError

Attempt = Callable[[], BaseException | None]

# The digest of a program without operations.
_NOTHING = digest([])
# Ends of a case that need no question to the kernel about its dated switches.
_EXPLAINED = frozenset({Outcome.PASS, Outcome.XFAIL, Outcome.SKIP})


class Worker:
    """Runs cases on one guest of a target.

    ``directory`` is for console.log; ``fresh_guests`` boots a kernel for every case; no case is
    begun after ``limit``.
    """

    def __init__(
        self,
        target: Target,
        directory: Path,
        expectations: Expectations,
        *,
        allowed: Allowed | None = None,
        fresh_guests: bool = False,
        repeat: int = 1,
        limit: RunLimit | None = None,
    ) -> None:
        self._allowed = allowed or Allowed()
        self._limit = limit
        self._repeat = repeat
        self._target = target
        self._directory = directory
        self._expectations = expectations
        self._guest: MachineGuest | None = None
        self._case: tuple[Case, str] | None = None
        # Once a kernel does not come up it does not for all cases that are left.
        self._boots = BootAttempts()
        kernel = target.profile if target.is_model else self._boot
        self._runner = Runner(
            target.profile,
            kernel,
            explain,
            self._module,
            target.user_modules,
            fresh_guests=fresh_guests,
            promised=promised_by(target.wanted),
            allow=self._mark_allowed,
        )

    def measure_with(self, probes: Sequence[Probe], selected: Collection[str]) -> None:
        """Have what the kernel itself is asked by about dated switches (see Runner).

        A self-check has no kernel.
        """
        if not self._target.is_model:
            self._runner.measure_with(probes, selected)

    @property
    def start(self) -> str:
        """How its guest came up, "" before there is one."""
        return self._guest.start if self._guest is not None else ""

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """The dated switches that the kernel was seen to contradict."""
        return self._runner.contradictions

    def take_other_results(self) -> list[CaseResult]:
        """Results that belong to no case, each returned once."""
        return self._runner.take_other_results()

    def finish(self) -> None:
        """The last case has ended."""
        self._runner.finish()

    def launch(self) -> None:
        """Let the guest boot.

        Raises VmError when it cannot be started.
        """
        if self._guest is None and not self._target.is_model:
            self._guest = MachineGuest(self._target, self._directory, self._boots, self._limit)

    def _boot(self) -> Guest:
        with self._boots.counted():
            if self._guest is None:
                self.launch()
            guest = self._guest
            assert guest is not None
            try:
                guest.wait_ready()
            except VmError:
                # It will never answer: whoever asks next gets another one.
                self._guest = None
                guest.close()
                raise
        return guest

    def _module(self, name: str) -> bytes | None:
        path = self._target.modules.get(name)
        return None if path is None else path.read_bytes()

    def begin(self) -> UserEvents:
        """The system for the case that is being run."""
        assert self._case is not None, "the fixture ue is for cases"
        return self._runner.begin(*self._case)

    def run(
        self, case: Case, case_id: str, attempt: Attempt
    ) -> tuple[CaseResult, CaseResult | None]:
        """Run a case, ``repeat`` times or until a result is unexpected; see ``_run``."""
        number = 1
        result, first = self._run(case, case_id, attempt)
        while number < self._repeat and result.outcome in _EXPLAINED:
            number += 1
            result, first = self._run(case, case_id, attempt)
        if self._repeat > 1 and result.outcome not in _EXPLAINED:
            reason = f"{result.reason} (run {number} of {self._repeat})"
            result = replace(result, reason=reason.lstrip())
        return result, first

    def _run(
        self, case: Case, case_id: str, attempt: Attempt
    ) -> tuple[CaseResult, CaseResult | None]:
        """Run a case, and once more on a new guest if it lost its own.

        ``attempt`` performs the case and returns what it raised.  Returns the result that
        stands, and the first one if there was a second.
        """
        if self._limit is not None and self._limit.over:
            return self._limit.not_judged(case, case_id), None
        self._case = (case, case_id)
        first = self._once(case, case_id, attempt)
        if lost_guest(first):
            self._runner.measure()
            second = self._once(case, case_id, attempt)
            return settle(first, self.expected(second)), first
        if self.expected(first).outcome not in _EXPLAINED:
            if self._runner.measure():
                # It was held against a contract that is not this kernel's.
                return self._run(case, case_id, attempt)
            first = self._runner.compared(case, first.outcome, first)
        stands = self.expected(first)
        if stands.has_unexcused_report and stands.outcome not in _EXPLAINED:
            # Alone it shows whether an earlier case had the kernel say so.
            second = self._once(case, case_id, attempt)
            return settle(stands, self.expected(second)), first
        return stands, None

    def _once(self, case: Case, case_id: str, attempt: Attempt) -> CaseResult:
        result = self._runner.end(case, case_id, attempt())
        if result.outcome is Outcome.PASS and result.digest == _NOTHING:
            why = "it performed no operation"
            return replace(result, outcome=Outcome.ERROR, blame=Blame.CASE, reason=why)
        return result

    def expected(self, result: CaseResult) -> CaseResult:
        """Known deviations applied; a self-check has none.

        They are those of the contract that the case was judged by, measured switches included.
        """
        if self._target.is_model:
            return result
        return self._expectations.judge(self._context(result.adapted), result)

    def _mark_allowed(self, case_id: str, reports: Sequence[Report]) -> Sequence[Report]:
        """What the kernel reported, with the rules that excuse it."""
        return self._allowed.excuse(self._context(), case_id, reports)

    def _context(self, adapted: Sequence[str] = ()) -> KernelContext:
        profile = self._target.profile
        release = self._target.release or str(profile.release)
        switches = profile.switches ^ frozenset(adapted)
        return KernelContext(release, profile.name, flavour=self._target.flavour, switches=switches)

    def leave(self) -> None:
        """Leave a guest that was launched to a process that was forked since."""
        if self._guest is not None:
            self._guest.leave()

    def end(self) -> None:
        """Nothing is left of a guest in which no case of ours was run."""
        if self._guest is not None:
            self._guest.end()

    def close(self) -> None:
        """Nothing of the guest is left."""
        if self._guest is not None:
            self._guest.close()
