"""Run cases on one guest of a target, and settle which result of a case stands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from conformance.allowed_reports.condition import KernelContext
from conformance.allowed_reports.rules import Allowed
from conformance.cases.case import Case, Isolation
from conformance.client.user_events import UserEvents
from conformance.ops.digest import digest
from conformance.results.case_result import CaseResult, Report
from conformance.results.contradiction import Contradiction
from conformance.results.judging import lost_guest, settle
from conformance.results.outcome import CONFORMING, Blame, Outcome
from conformance.runner.guest import Guest
from conformance.runner.kernel_features import promised_by
from conformance.runner.patience import Patience
from conformance.runner.runner import Runner
from conformance.runner.switch_probes import Probe
from conformance.session.here.system import BorrowedSystem
from conformance.session.target.target import Target
from conformance.session.time_limits import Lost, RunLimit
from conformance.session.worker.blame import explain
from conformance.session.worker.boot_attempts import BootAttempts
from conformance.session.worker.here_guest import HereGuest, unfit
from vm.errors import VmError

if TYPE_CHECKING:
    from conformance.session.worker.machine_guest import MachineGuest

Attempt = Callable[[], BaseException | None]

# The digest of a program without operations.
_NOTHING = digest([])
# Outcomes for which no switch probes are needed.
_EXPLAINED = CONFORMING | {Outcome.XFAIL, Outcome.SKIP}
# Second runs of cases whose first result stands, per worker.
_MOST_SECOND_RUNS = 8
# Cases that wrong predictions misled, after which no other runs ahead, per worker: on such a kernel
# it saves no time.
_MOST_MISLED = 8


class Worker:
    """Runs cases on one guest of a target.

    ``directory`` is for console.log; ``fresh_guests`` boots a kernel for every case; no case starts
    after ``limit``; ``lost`` is shared with the other workers.
    """

    def __init__(
        self,
        target: Target,
        directory: Path,
        *,
        allowed: Allowed | None = None,
        fresh_guests: bool = False,
        repeat: int = 1,
        limit: RunLimit | None = None,
        lost: Lost | None = None,
        system: BorrowedSystem | None = None,
    ) -> None:
        """``system`` is the one that a target which runs here borrows."""
        self._system = system
        self._lost = lost or Lost()
        self._allowed = allowed or Allowed()
        self._limit = limit
        self._repeat = repeat
        self._target = target
        self._directory = directory
        self._guest: MachineGuest | HereGuest | None = None
        self._case: tuple[Case, str] | None = None
        # Second runs of cases whose first result stands.
        self._second_runs = 0
        # Whether the case runs ahead (conformance.client.lockstep); number of those misled.
        self._ahead = False
        self._misled = 0
        # Shared by all guests: a kernel that does not boot is given up for every case.
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
            patience=Patience(self._lost.waits),
            unfit=None if system is None else partial(unfit, system),
        )

    def measure_with(self, probes: Sequence[Probe], selected: Collection[str]) -> None:
        """Set the switch probes (see Runner).

        A self-check has none.
        """
        if not self._target.is_model:
            self._runner.measure_with(probes, selected)

    @property
    def start(self) -> str:
        """How the guest started, "" before."""
        return self._guest.start if self._guest is not None else ""

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """The dated switches that the kernel contradicts."""
        return self._runner.contradictions

    def take_other_results(self) -> list[CaseResult]:
        """Results that belong to no case, each returned once."""
        return self._runner.take_other_results()

    def finish(self) -> None:
        """Run the remaining probes, unload user modules, and leave the running kernel."""
        self._runner.finish()
        if isinstance(self._guest, HereGuest):
            self._runner.end_guest(self._guest.finish)

    def launch(self) -> None:
        """Start to boot the guest.  Raises VmError."""
        if self._guest is not None or self._target.is_model:
            return
        if self._system is not None:
            self._guest = HereGuest(
                self._target, self._directory, self._system, self._limit, self._lost.calls
            )
            return
        # Imported late: where the running kernel is judged there need be no QEMU, nor its clients.
        from conformance.session.worker.machine_guest import MachineGuest

        self._guest = MachineGuest(
            self._target, self._directory, self._boots, self._limit, self._lost.calls
        )

    def _boot(self) -> Guest:
        with self._boots.counted():
            if self._guest is None:
                self.launch()
            guest = self._guest
            assert guest is not None
            try:
                guest.wait_ready()
            except VmError:
                # It will never answer: the next request boots another guest.
                self._guest = None
                guest.close()
                raise
        return guest

    def _module(self, name: str) -> bytes | None:
        path = self._target.modules.get(name)
        return None if path is None else path.read_bytes()

    def begin(self) -> UserEvents:
        """The system for the running case."""
        assert self._case is not None, "the fixture ue is for cases"
        return self._runner.begin(*self._case, ahead=self._ahead)

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
        if self._runner.graded(case, first).outcome not in _EXPLAINED:
            if lost_guest(first):
                self._runner.measure()
                stands = self._runner.graded(case, first)
                if not self._runs_again(stands):
                    return stands, None
                second = self._once(case, case_id, attempt)
                return settle(stands, self._runner.graded(case, second)), first
            if self._runner.measure():
                # A switch was measured meanwhile: judge the case again with it.
                return self._run(case, case_id, attempt)
            first = self._runner.compared(case, first.outcome, first)
        stands = self._runner.graded(case, first)
        reported = stands.has_unexcused_report and stands.outcome not in _EXPLAINED
        if reported and self._runs_again(stands):
            # Alone on a new guest it shows whether an earlier case caused the report.
            second = self._once(case, case_id, attempt)
            return settle(stands, self._runner.graded(case, second)), first
        return stands, None

    def _runs_again(self, first: CaseResult) -> bool:
        """Whether a case runs a second time.

        That of a result which stands anyway only shows how reliable it is: on a kernel that crashes
        in many cases it would double the time.
        """
        if first.outcome is Outcome.ERROR:
            return True
        self._second_runs += 1
        return self._second_runs <= _MOST_SECOND_RUNS

    def _once(self, case: Case, case_id: str, attempt: Attempt) -> CaseResult:
        """The result of a case; one that its predictions misled runs again, operation by operation.

        If it passes then, the difference that was seen still stands.
        """
        # The model predicts no known bug and no crash, and what a misled case leaves in a shared
        # kernel stays.
        unpredictable = bool(case.bugs) or case.isolation is Isolation.FATAL
        unpredictable |= self._system is not None
        self._ahead = not unpredictable and self._misled < _MOST_MISLED
        result = self._runner.end(case, case_id, attempt())
        if self._runner.misled:
            self._misled += 1
            self._ahead = False
            again = self._runner.end(case, case_id, attempt())
            result = result if again.outcome is Outcome.PASS else again
        if result.outcome is Outcome.PASS and result.digest == _NOTHING:
            why = "it performed no operation"
            return replace(result, outcome=Outcome.ERROR, blame=Blame.CASE, reason=why)
        return result

    def _mark_allowed(self, case_id: str, reports: Sequence[Report]) -> Sequence[Report]:
        """The reports, with those marked that a rule allows."""
        return self._allowed.excuse(self._context(), case_id, reports)

    def _context(self) -> KernelContext:
        profile = self._target.profile
        release = self._target.release or str(profile.release)
        return KernelContext(release, profile.name, self._target.flavour, profile.switches)

    def hand_over(self) -> None:
        """Hand a launched guest over to a forked process."""
        if self._guest is not None:
            self._guest.hand_over()

    def end(self) -> None:
        """End a guest in which no case ran."""
        if self._guest is not None:
            self._guest.end()

    def close(self) -> None:
        """End the guest."""
        if self._guest is not None:
            self._guest.close()
