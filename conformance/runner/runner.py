"""Running cases: what system a case gets, how its end is judged, and what that says of the guest.

The runner does not know where guests come from (see keeper.py), and an explanation turns
whatever a guest raised into an outcome.  Before the first case it asks the probes which of
the dated switches of its profile the kernel contradicts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from conformance.abi.profile import Profile
from conformance.cases.case import Case, Facility, Isolation
from conformance.client.executor import ModelExecutor
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.results.case_result import (
    Blame,
    CaseResult,
    Contradiction,
    Outcome,
    Report,
    SkipReason,
    lost,
)
from conformance.runner.case_run import Attempt, Explain, NotJudged
from conformance.runner.console_verdict import complained, of_others
from conformance.runner.guest_lifecycle import Guest, Keeper, Modules, NotBuilt, Supply
from conformance.runner.switch_probes import Measured, Probe
from conformance.runner.user_modules import Unloadable, UserModule, UserModules

# What stands in the guest's log behind the last case.
_END = "run.end"
# The reports of a kernel during a case of this id, with the rules that excuse them.
Excuse = Callable[[str, Sequence[Report]], Sequence[Report]]


class Runner:
    """Runs cases one after the other on one guest, or on a model in the place of a kernel."""

    def __init__(
        self,
        profile: Profile,
        kernel: Supply | Profile,
        explain: Explain,
        modules: Modules = lambda name: None,
        inserted: Sequence[UserModule] = (),
        *,
        anew: bool = False,
        promised: frozenset[Facility] = frozenset(Facility),
        excuse: Excuse = lambda case_id, reports: reports,
    ) -> None:
        """``kernel`` hands out guests, or is the profile of the model in their place.

        ``modules`` are the suite's, for cases that want them; ``inserted`` the user's.  With
        ``anew`` every case has a kernel in which nothing has happened.  The kernel is known to
        have what is ``promised``: it is not asked for these facilities.  ``excuse`` knows rules
        that let reports on the console pass.
        """
        self._excuse = excuse
        self._anew = anew
        self._explain = explain
        self._inserted = UserModules(inserted, explain)
        # The model in the place of a kernel, which has no guest.
        self._answering = kernel if isinstance(kernel, Profile) else None
        supply = _no_guest if isinstance(kernel, Profile) else kernel
        self._keeper = Keeper(supply, modules, self._inserted, promised)
        self._serial = 0
        self._attempt: Attempt | None = None
        self._measured = Measured(profile)
        self._selected: Collection[str] = ()
        self._beside: list[CaseResult] = []

    def measure_with(self, probes: Sequence[Probe], selected: Collection[str] = ()) -> None:
        """Have probes to ask, those that apply to the profile.

        Of the switches that are ``selected`` the cases will be run: each says as much as its
        probe as long as no case fails.
        """
        self._measured.use(probes)
        self._selected = selected

    def measure(self) -> bool:
        """Ask the probes, once; whether any found out that a switch is not as dated.

        Raises whatever the guest raises that nobody can explain.
        """
        before = self._measured.contradicted
        try:
            self._measured.measure(self._fits)
        except NotJudged:
            pass
        except Exception as trouble:
            if self._explain(trouble, True) is None:
                raise
            self._keeper.lost = True
        return self._measured.contradicted != before

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """The dated switches that the kernel was seen to contradict."""
        return self._measured.contradictions

    def take_beside(self) -> list[CaseResult]:
        """What happened beside the cases, told once.

        Probes that lost their guest, what the kernel reported between two cases, and modules of
        the user's.
        """
        taken, self._beside = self._beside, []
        return taken + self._inserted.take_results()

    def finish(self) -> None:
        """The last case has ended: what is left to ask is asked, what was brought goes out."""
        guest = self._keeper.guest
        if guest is None:
            return
        self._measured.leave_out(self._selected)
        self.measure()
        try:
            if not self._keeper.lost:
                self._look_back(guest)
            if self._inserted:
                self._inserted.unload(self._keeper.ready())
        except NotJudged:
            return
        except Exception as trouble:
            if self._explain(trouble, True) is None:
                raise
            self._keeper.lost = True

    def _look_back(self, guest: Guest) -> None:
        """See what the kernel has reported since the last case ended."""
        mark = guest.mark(_END)
        reports = [each for each in guest.reports(mark) if each.after]
        self._tell_others(self._excuse(_END, reports), _END, guest.console(mark))

    def _tell_others(self, reports: Sequence[Report], case_id: str, console: str) -> None:
        """Results for reports that came before a case, blamed on the modules in them."""
        found = of_others([each for each in reports if each.after], case_id, console)
        self._beside += map(self._inserted.accused, found)

    def begin(self, case: Case, case_id: str) -> UserEvents:
        """A system for one case.

        Raises NotJudged, and whatever the guest raises when it cannot be had.
        """
        self._attempt = attempt = Attempt()
        lacking = self._measured.lacking(case)
        if lacking:
            why = f"measured, and not what the case is for: {', '.join(lacking)}"
            raise NotJudged(SkipReason.CONTRADICTED, why, lacking)
        return self._start(attempt, case, case_id, self._measured.profile_for(case))

    def _start(self, attempt: Attempt, case: Case, case_id: str, profile: Profile) -> UserEvents:
        self._serial += 1
        model = Model(profile)
        if self._answering is not None:
            return attempt.start(model, ModelExecutor(Model(self._answering)), self._serial)
        if self._anew and self._serial > 1:
            self._keeper.lost = True
        guest = self._keeper.prepare(case)
        # Before the module: what the kernel says to that is of the case that wants it.
        attempt.mark = guest.mark(case_id)
        self._keeper.load(case.module)
        model.world.table.multi_id = self._keeper.multi_id(case)
        return attempt.start(model, self._keeper.executor(), self._serial)

    def end(self, case: Case, case_id: str, error: BaseException | None) -> CaseResult:
        """Judge how a case ended and put its system in order.

        ``error`` is what the case raised, if anything.
        """
        attempt = self._attempt
        assert attempt is not None, "a case ends that never began"
        self._attempt = None
        judged = attempt.judge(case, case_id, error, self._explain)
        if judged.outcome is Outcome.SKIP:
            return judged
        result = self._settled(attempt, case, case_id, judged)
        return self._inserted.accused(self.compared(case, judged.outcome, result))

    def _settled(
        self, attempt: Attempt, case: Case, case_id: str, judged: CaseResult
    ) -> CaseResult:
        """The result once the system is in order, and the guest is renewed if it has to be."""
        if lost(judged):
            self._keeper.lost = True
            return judged
        guest = self._keeper.guest
        if guest is None:
            return judged
        shared = case.isolation in (Isolation.GLOBAL, Isolation.FATAL)
        if case.isolation is Isolation.FATAL or (shared and judged.outcome is not Outcome.PASS):
            # What all events share, such as a page that anybody may write, was not put back.
            self._keeper.lost = True
        try:
            return self._tidied(guest, attempt, judged)
        except Exception as trouble:
            found = self._explain(trouble, True)
            if found is None:
                raise
            self._keeper.lost = True
            return attempt.result(case, case_id, found)

    def _tidied(self, guest: Guest, attempt: Attempt, judged: CaseResult) -> CaseResult:
        """Put the guest in order if it is used again, and look at what the kernel said."""
        passed = judged.outcome is Outcome.PASS
        changed = [] if self._keeper.lost else self._keeper.put_in_order(attempt, passed=passed)
        if attempt.mark < 0:
            # It never began: nothing on the console is about it.
            return judged
        # Behind the last look: what changed the guest may have been reported then.
        reports = self._excuse(judged.id, guest.reports(attempt.mark))
        if not reports:
            return self._undisturbed(attempt, judged, changed)
        # A kernel that reported something is another: what checks it may be silent from then on.
        self._keeper.lost = True
        console = guest.console(attempt.mark)
        self._tell_others(reports, judged.id, console)
        return complained(judged, [each for each in reports if not each.after], console)

    def _undisturbed(
        self, attempt: Attempt, judged: CaseResult, changed: Sequence[str]
    ) -> CaseResult:
        """A case that has changed what the next one finds did more than it declares."""
        self._keeper.lost = self._keeper.lost or bool(changed)
        if judged.outcome is not Outcome.PASS:
            return judged
        if forgotten := attempt.forgotten():
            why = f"it left behind: {', '.join(forgotten)}"
        elif changed:
            why = f"it left its guest changed: {changed[0]}"
        else:
            return judged
        return replace(judged, outcome=Outcome.ERROR, blame=Blame.CASE, reason=why)

    # Probes

    def _fits(self, probe: Probe, profile: Profile) -> bool | None:
        """Whether a program goes as under a profile; None when the guest is lost."""
        case, case_id = probe.case, f"{probe.case.id}.probe"
        attempt = Attempt()
        try:
            user_events = self._start(attempt, case, case_id, profile)
        except (NotBuilt, Unloadable):
            raise
        except NotJudged:
            return False
        error: Exception | None = None
        try:
            probe.program(user_events)
        except Exception as raised:
            error = raised
        judged = attempt.judge(case, case_id, error, self._explain)
        settled = self._settled(attempt, case, case_id, judged)
        if lost(settled):
            self._beside.append(settled)
            return None
        # What the kernel says on its console is left to the case.
        return judged.outcome is Outcome.PASS

    def compared(self, case: Case, answered: Outcome, result: CaseResult) -> CaseResult:
        """The result of a case; that of one about a switch has to agree with its probe.

        ``answered`` is what its answers alone came to.
        """
        if not case.switch:
            return result
        return self._measured.compared(
            case.switch, answered, result, lambda: self._contradicts_now(case.switch)
        )

    def _contradicts_now(self, switch: str) -> bool:
        """Whether a probe that agreed with the profile does not any more.

        If it does, what fails the case is something else.
        """
        try:
            return self._measured.contradicts_now(switch, self._fits)
        except Exception as trouble:
            if self._explain(trouble, True) is None:
                raise
            self._keeper.lost = True
            return False


def _no_guest() -> Guest:
    raise AssertionError("a model needs no guest")
