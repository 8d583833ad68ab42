"""Run cases one after another on one guest and judge them.

Guests come from a supply (``conformance.runner.guest_lifecycle``).  Before the first case, probes
find the dated switches of the profile that the kernel contradicts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from conformance.abi.bugs import BUGS
from conformance.abi.profile import Profile
from conformance.cases.case import Case, Facility, Isolation
from conformance.client.executor import ModelExecutor
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.results.case_result import ENABLERS, LEFTOVER, CaseResult, Mismatch, Report
from conformance.results.contradiction import Contradiction
from conformance.results.judging import lost_guest
from conformance.results.outcome import UNEXPECTED, Blame, Outcome, SkipReason
from conformance.runner.case_run import CaseRun
from conformance.runner.console_verdict import (
    judge_late_reports,
    judge_lost_guest,
    judge_reports,
)
from conformance.runner.guest import Guest, Modules, Unfit
from conformance.runner.guest_invariants import Change
from conformance.runner.guest_lifecycle import GuestLifecycle, NotBuilt, Supply
from conformance.runner.judgement import Explain, NotInitialised, NotJudged
from conformance.runner.patience import Patience
from conformance.runner.switch_probes import Probe, SwitchMeasurement
from conformance.runner.user_module import UserModule
from conformance.runner.user_modules import ModuleNotLoaded, UserModules

_KEPT_OF_PROBES = tuple(f".probe.{end}" for end in (LEFTOVER, ENABLERS))
# The mark on the console after the last case.
_END = "run.end"
# Marks the allowed ones among the reports that appeared during the case with an id.
Allow = Callable[[str, Sequence[Report]], Sequence[Report]]


class Runner:
    """Runs cases on one guest, or on a model that replaces the kernel."""

    def __init__(
        self,
        profile: Profile,
        kernel: Supply | Profile,
        explain: Explain,
        modules: Modules = lambda name: None,
        user_modules: Sequence[UserModule] = (),
        *,
        fresh_guests: bool = False,
        promised: frozenset[Facility] = frozenset(Facility),
        allow: Allow = lambda case_id, reports: reports,
        patience: Patience | None = None,
        unfit: Unfit | None = None,
    ) -> None:
        """``kernel`` supplies guests, or is the profile of the model that replaces them.

        ``modules`` are the helper modules of the suite.  With ``fresh_guests`` every case starts
        on a newly booted kernel.  The kernel is not probed for ``promised`` features.  Others
        use it as well if ``unfit`` is given.
        """
        self._allow = allow
        self._fresh_guests = fresh_guests
        self._explain = explain
        self._user_modules = UserModules(user_modules, explain)
        self._self_check = kernel if isinstance(kernel, Profile) else None
        supply = _no_guest if isinstance(kernel, Profile) else kernel
        self._lifecycle = GuestLifecycle(
            supply,
            modules,
            self._user_modules,
            promised,
            patience or Patience(),
            unfit,
            self._record_end_of_guest,
        )
        # The id of the last case or probe that ended, "" before.
        self._last = ""
        self._serial = 0
        self._run: CaseRun | None = None
        self._switches = SwitchMeasurement(profile)
        self._selected: Collection[str] = ()
        self._other_results: list[CaseResult] = []
        #: The last case ran on with a wrong answer: it has to run again, and not ahead.
        self.misled = False

    def measure_with(self, probes: Sequence[Probe], selected: Collection[str] = ()) -> None:
        """Set the probes to run.

        The cases about the ``selected`` switches will run: unless one fails, its probe is not
        needed.
        """
        self._switches.use(probes)
        self._selected = selected

    def measure(self) -> bool:
        """Run the probes, once; whether any found a contradicted switch.

        Raises what the guest raises, if ``explain`` does not explain it.
        """
        before = self._switches.contradicted
        try:
            self._switches.measure(self._passes_under)
        except (NotJudged, NotInitialised):
            pass
        except Exception as error:
            self._give_up_guest(error)
        return self._switches.contradicted != before

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """The dated switches that the kernel contradicts."""
        return self._switches.contradictions

    def take_other_results(self) -> list[CaseResult]:
        """Results that belong to no case, each returned once.

        They are probes that lost their guest, losses of a guest and kernel reports between cases,
        what the kernel kept of cases that had ended, and user modules.  What it kept of a probe is
        left to its case.
        """
        taken, self._other_results = self._other_results, []
        kept = self._lifecycle.take_results()
        taken += [each for each in kept if not each.id.endswith(_KEPT_OF_PROBES)]
        return taken + self._user_modules.take_results()

    def finish(self) -> None:
        """Run the remaining probes and unload user modules."""
        guest = self._lifecycle.guest
        if guest is None:
            return
        # A bug that no case showed is nothing to report.
        self._switches.leave_out({*self._selected, *(bug.name for bug in BUGS)})
        self.measure()
        try:
            self._lifecycle.settle()
            if self._lifecycle.must_replace:
                self._lifecycle.record_late_reports()
            else:
                self._check_end_of_console(guest)
            if self._user_modules:
                self._user_modules.unload(self._lifecycle.ready())
        except (NotJudged, NotInitialised):
            return
        except Exception as error:
            self._give_up_guest(error, final=True)

    def end_guest(self, end: Callable[[], object]) -> None:
        """End the guest after ``finish``: its processes may make the kernel report something."""
        try:
            try:
                end()
            finally:
                self._lifecycle.record_late_reports()
        except Exception as error:
            self._give_up_guest(error, final=True)

    def begin(self, case: Case, case_id: str, *, ahead: bool = False) -> UserEvents:
        """Prepare a guest for one case; the system that the case uses; ``ahead``: see Lockstep.

        Raises NotJudged, and what the guest raises when it cannot be prepared.
        """
        self._run = run = CaseRun()
        lacking = self._switches.lacking(case)
        if lacking:
            why = f"measured, and not what the case is for: {', '.join(lacking)}"
            raise NotJudged(SkipReason.CONTRADICTED, why, lacking)
        profile = self._switches.profile_for(case)
        return self._start(run, case, case_id, profile, ahead=ahead)

    def end(self, case: Case, case_id: str, error: BaseException | None) -> CaseResult:
        """Judge a case that raised ``error`` or nothing, and clean up its guest."""
        run, self._run = self._run, None
        self.misled, self._last = False, case_id
        if run is None:
            # It never began: one of its arguments is unknown.
            return CaseRun().judge(case, case_id, error, self._explain)
        error = run.catch_up(error)
        self.misled = run.misled
        # Operations were performed that are not recorded.
        self._lifecycle.must_replace |= self.misled
        judged = run.judge(case, case_id, error, self._explain)
        if judged.outcome is Outcome.SKIP:
            # A case that was skipped in its middle leaves its processes.
            self._lifecycle.must_replace |= bool(run.program)
            return judged
        result = self._after_cleanup(run, case, case_id, judged)
        return self._user_modules.with_blame(self.compared(case, judged.outcome, result))

    def _start(
        self, run: CaseRun, case: Case, case_id: str, profile: Profile, *, ahead: bool = False
    ) -> UserEvents:
        self._serial += 1
        model = Model(profile)
        if self._self_check is not None:
            kernel = ModelExecutor(Model(self._self_check))
            return run.start(model, kernel, self._serial, ahead=ahead)
        if self._fresh_guests and self._serial > 1:
            self._lifecycle.retire()
        guest, prepared = self._lifecycle.prepare(case)
        # Before the helper module is loaded: a report about it belongs to the case.
        run.mark = guest.mark(case_id)
        prepared.load(case)
        model.world.table.multi_id = prepared.multi_id(case)
        return run.start(model, prepared.executor(), self._serial, ahead=ahead)

    def _after_cleanup(
        self, run: CaseRun, case: Case, case_id: str, judged: CaseResult
    ) -> CaseResult:
        """The result of a case once its guest is cleaned up, or is to be replaced."""
        guest = self._lifecycle.guest
        if lost_guest(judged) or run.lost_guest:
            self._lifecycle.give_up()
            return judged
        if guest is None:
            return judged
        shared = case.isolation in (Isolation.GLOBAL, Isolation.FATAL)
        if case.isolation is Isolation.FATAL or (shared and judged.outcome is not Outcome.PASS):
            self._lifecycle.must_replace = True
        try:
            result = self._with_guest_state(guest, run, judged)
        except Exception as error:
            found = self._explain(error, True)
            if found is None:
                raise
            self._lifecycle.give_up()
            if judged.outcome is not Outcome.FAIL or found.outcome is not Outcome.ERROR:
                return run.result(case, case_id, found, judged.mismatches)
            # The wrong answers stay wrong.
            reports = self._allow(case_id, found.reports)
            failed = replace(judged, reason=f"{judged.reason}; its cleanup: {found.reason}")
            return judge_reports(failed, reports, found.console)
        if case.bugs and self._lifecycle.must_replace and result.outcome is not Outcome.PASS:
            # What a known bug corrupts may be found at any time.
            self._lifecycle.give_up()
        return result

    def _with_guest_state(self, guest: Guest, run: CaseRun, judged: CaseResult) -> CaseResult:
        """The result with what the console, and the invariants of the guest, add to it."""
        changed = self._lifecycle.clean_up(run, judged.id, passed=judged.outcome is Outcome.PASS)
        if run.mark < 0:
            # The case never began: nothing on the console is about it.
            return judged
        # After the cleanup, which may itself provoke a report.
        reports = self._allow(judged.id, guest.reports(run.mark))
        if not reports:
            return self._unless_changed(judged, changed)
        # Some warnings appear once per boot: the guest is no longer like a new one.
        self._lifecycle.must_replace = True
        console = guest.console(run.mark)
        self._record_late_reports(reports, judged.id, console)
        return judge_reports(judged, [each for each in reports if not each.after], console)

    def _unless_changed(self, judged: CaseResult, changed: Sequence[Change]) -> CaseResult:
        """The result; no PASS if the guest is changed for good, by the kernel or by the case."""
        if not changed:
            return judged
        self._lifecycle.must_replace = True
        if judged.outcome is not Outcome.PASS:
            return judged
        found = [
            Mismatch(0, f"guest {each.what}", each.before, each.after)
            for each in changed
            if each.by_kernel
        ]
        if not found:
            why = f"it left its guest changed: {changed[0]}"
            return replace(judged, outcome=Outcome.ERROR, blame=Blame.CASE, reason=why)
        why = f"{found[0].field} changed from {found[0].allowed} to {found[0].observed}"
        return replace(
            judged,
            outcome=Outcome.FAIL,
            blame=Blame.KERNEL,
            reason=f"{why}, and was not or cannot be restored",
            mismatches=tuple(found),
        )

    def _check_end_of_console(self, guest: Guest) -> None:
        """Record the kernel reports since the end of the last case."""
        mark = guest.mark(_END)
        reports = [each for each in guest.reports(mark) if each.after]
        self._record_late_reports(self._allow(_END, reports), _END, guest.console(mark))

    def _record_end_of_guest(self, reports: Sequence[Report], console: str) -> None:
        """Record the kernel reports after the last case of a guest."""
        last = [replace(each, after=each.after and (self._last or each.after)) for each in reports]
        allowed = self._allow(self._last or _END, last)
        self._record_late_reports(allowed, _END, console, "its guest ended")

    def _record_late_reports(
        self, reports: Sequence[Report], case_id: str, console: str, end: str = ""
    ) -> None:
        """Record results for reports that appeared before a case began, or another end."""
        late = [each for each in reports if each.after]
        found = judge_late_reports(late, case_id, console, end)
        self._other_results += map(self._user_modules.with_blame, found)

    def _give_up_guest(self, error: Exception, *, final: bool = False) -> None:
        """Replace the guest after an error of guest or host; raise any other error.

        An unexpected one is recorded, and a ``final`` one: no case shows it.
        """
        found = self._explain(error, True)
        if found is None:
            raise error
        self._lifecycle.give_up()
        if final or found.outcome in UNEXPECTED:
            lost = judge_lost_guest(found, self._last)
            self._other_results.append(self._user_modules.with_blame(lost))

    # Probes

    def _passes_under(self, probe: Probe, profile: Profile) -> bool | None:
        """Whether a program passes under a profile; None if the guest is lost."""
        case, case_id = probe.case, f"{probe.case.id}.probe"
        run = CaseRun()
        try:
            user_events = self._start(run, case, case_id, profile)
        except (NotBuilt, NotInitialised, ModuleNotLoaded):
            raise
        except NotJudged:
            return False
        error: Exception | None = None
        try:
            probe.program(user_events)
        except Exception as raised:
            error = raised
        self._last = case_id
        judged = run.judge(case, case_id, error, self._explain)
        result = self._after_cleanup(run, case, case_id, judged)
        if lost_guest(result):
            self._other_results.append(result)
            return None
        # Kernel reports are left to the case itself.
        return judged.outcome is Outcome.PASS

    def compared(self, case: Case, answered: Outcome, result: CaseResult) -> CaseResult:
        """The result of a case; that of one about a switch has to agree with its probe.

        ``answered`` is the outcome by the answers of the kernel alone.
        """
        if not case.switch:
            return result
        return self._switches.compared(
            case.switch, answered, result, lambda: self._contradicts_now(case.switch)
        )

    def graded(self, case: Case, result: CaseResult) -> CaseResult:
        """The result as it counts; the model is judged strictly."""
        if self._self_check is not None:
            return replace(result, bug="")
        return self._switches.graded(case, result)

    def _contradicts_now(self, switch: str) -> bool:
        """Whether a probe that agreed with the profile no longer does."""
        try:
            return self._switches.contradicts_now(switch, self._passes_under)
        except Exception as error:
            self._give_up_guest(error)
            return False


def _no_guest() -> Guest:
    raise AssertionError("a model needs no guest")
