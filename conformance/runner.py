"""Running cases: which system a case gets, how its end is judged, what it leaves.

The runner does not know where guests come from: a supply hands them out, and an
explanation turns whatever a guest raised into an outcome.  Before the first case it asks
the probes which of the dated switches of its profile the kernel contradicts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Protocol

from conformance.abi.profiles import Profile
from conformance.attempt import Attempt, Explain, ModuleRefused, NotJudged
from conformance.cases.declare import Case, Facility, Isolation
from conformance.complaints import complained, of_others
from conformance.facilities import facilities_of
from conformance.leftovers import ACTOR, Janitor, clearing
from conformance.measured import Measured, Probe
from conformance.model.machine import Model
from conformance.outcome import (
    Blame,
    CaseResult,
    Contradiction,
    Outcome,
    Report,
    SkipReason,
    lost,
)
from conformance.surroundings import Surroundings
from conformance.sut.calls import Call
from conformance.sut.crew import Crew
from conformance.sut.executor import ModelExecutor
from conformance.sut.guest import Channel, GuestExecutor
from conformance.sut.user_events import UserEvents
from conformance.usermodules import Unloadable, UserModule, UserModules

# Seconds of an idle machine in which the leftovers of earlier cases must be gone.
_CLEAN = 5.0
# What stands in the guest's log behind the last case.
_END = "run.end"


class Guest(Channel, Protocol):
    """A booted kernel with actors, and a console that is evidence."""

    def mark(self, text: str) -> int:
        """Write a line to the guest's log, as proof that it answers; where it is there."""
        ...

    def console(self, since: int) -> str:
        """What the console said since a mark."""
        ...

    def reports(self, since: int) -> list[Report]:
        """What the kernel reported on its console since a mark, and before it since it was asked
        last; that is of another case (``after``).
        """
        ...

    def pristine(self, processors: int = 1) -> None:
        """Become a kernel of so many processors in which nothing has happened."""
        ...


Supply = Callable[[], Guest]
# The content of a module's file for the kernel under test, None where there is none.
Modules = Callable[[str], bytes | None]
# The reports of a kernel during a case of this id, with the rules that excuse them.
Excuse = Callable[[str, Sequence[Report]], Sequence[Report]]


class NotBuilt(NotJudged):
    """The kernel under test has no user_events: nothing can be judged."""

    def __init__(self) -> None:
        why = "this kernel has neither user_events_data nor user_events_status"
        super().__init__(SkipReason.NOT_BUILT, why)


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
        self._promised = promised
        # What the kernel has beside user_events; None before it was asked.
        self._facilities: frozenset[Facility] | None = None
        self._anew = anew
        self._kernel = kernel
        self._modules = modules
        # Modules that the guest has loaded.
        self._loaded: set[str] = set()
        self._explain = explain
        self._inserted = UserModules(inserted, explain)
        self._guest: Guest | None = None
        # How many the guest has: a new one has one.
        self._processors = 1
        self._janitor: Janitor | None = None
        self._surroundings: Surroundings | None = None
        self._crew: Crew | None = None
        # The system-wide counter of multi-format events; None where a case went astray.
        self._multi_id: int | None = 0
        self._serial = 0
        self._attempt: Attempt | None = None
        # The guest did not outlive the last case.
        self._lost = False
        self._not_built: NotBuilt | None = None
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
            self._lost = True
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
        if self._guest is None or isinstance(self._kernel, Profile):
            return
        self._measured.leave_out(self._selected)
        self.measure()
        try:
            if not self._lost:
                self._look_back(self._guest)
            if not self._inserted:
                return
            guest, _ = self._ready(self._kernel)
            self._inserted.unload(guest)
        except NotJudged:
            return
        except Exception as trouble:
            if self._explain(trouble, True) is None:
                raise
            self._lost = True

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
        if isinstance(self._kernel, Profile):
            return attempt.start(model, ModelExecutor(Model(self._kernel)), self._serial)
        if self._anew and self._serial > 1:
            self._lost = True
        guest, janitor = self._ready(self._kernel)
        self._check(case.facilities, guest)
        if case.processors != self._processors:
            self._processors, self._lost = case.processors, True
            guest, janitor = self._ready(self._kernel)
        if case.isolation in (Isolation.GLOBAL, Isolation.FATAL) and not janitor.wait_until_new(
            _CLEAN
        ):
            guest.pristine(self._processors)
            guest, janitor = self._ready(self._kernel, renewed=True)
        # Before the module: what the kernel says to that is of the case that wants it.
        attempt.mark = guest.mark(case_id)
        self._load(case.module, janitor)
        if self._multi_id is None and "multi_format" in case.needs:
            self._multi_id = janitor.next_multi_id()
        model.world.table.multi_id = self._multi_id or 0
        assert self._crew is not None
        return attempt.start(model, GuestExecutor(guest, self._crew), self._serial)

    def _ready(self, supply: Supply, *, renewed: bool = False) -> tuple[Guest, Janitor]:
        if self._not_built is not None:
            raise self._not_built
        self._inserted.check()
        if self._guest is None:
            self._guest = supply()
            renewed = True
        elif self._lost:
            self._guest.pristine(self._processors)
            renewed = True
        self._lost = False
        if renewed or self._janitor is None:
            self._janitor = Janitor(self._guest)
            self._crew = Crew(self._guest, standing=ACTOR)
            self._multi_id = 0
            self._loaded = set()
            if not self._janitor.has_user_events():
                self._not_built = NotBuilt()
                raise self._not_built
            self._insert(self._guest)
            self._surroundings = Surroundings(self._guest)
        return self._guest, self._janitor

    def _check(self, wanted: Sequence[Facility], guest: Guest) -> None:
        """Raise NotJudged where the kernel was built without what a case uses."""
        asked = [each for each in wanted if each not in self._promised]
        if not asked:
            return
        if self._facilities is None:
            self._facilities = facilities_of(guest)
        lacking = [each.option for each in asked if each not in self._facilities]
        if lacking:
            why = f"the kernel has no {' and no '.join(lacking)}"
            raise NotJudged(SkipReason.CONFIG, why)

    def _insert(self, guest: Guest) -> None:
        """Have the user's modules in a new guest."""
        try:
            self._inserted.load(guest)
        except BaseException:
            # Half of them are no kernel to judge, and it may have been lost.
            self._lost = True
            raise

    def _load(self, module: str, janitor: Janitor) -> None:
        """Have a module of the suite in the guest."""
        if not module or module in self._loaded:
            return
        image = self._modules(module)
        if image is None:
            raise NotJudged(SkipReason.MODULE, f"there is no {module} for this kernel")
        error = janitor.load_module(image)
        if error:
            raise ModuleRefused(
                f"the kernel does not load {module}: {os.strerror(error)}; "
                "let it load unsigned modules, or leave these cases out with -k"
            )
        self._loaded.add(module)
        assert self._surroundings is not None
        self._surroundings.accept()

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
            self._lost = True
            return judged
        if self._guest is None:
            return judged
        shared = case.isolation in (Isolation.GLOBAL, Isolation.FATAL)
        if case.isolation is Isolation.FATAL or (shared and judged.outcome is not Outcome.PASS):
            # What all events share, such as a page that anybody may write, was not put back.
            self._lost = True
        try:
            return self._tidied(self._guest, attempt, judged)
        except Exception as trouble:
            found = self._explain(trouble, True)
            if found is None:
                raise
            self._lost = True
            return attempt.result(case, case_id, found)

    def _tidied(self, guest: Guest, attempt: Attempt, judged: CaseResult) -> CaseResult:
        """Put the guest in order if it is used again, and look at what the kernel said."""
        changed = [] if self._lost else self._put_in_order(guest, attempt, judged)
        if attempt.mark < 0:
            # It never began: nothing on the console is about it.
            return judged
        # Behind the last look: what changed the guest may have been reported then.
        reports = self._excuse(judged.id, guest.reports(attempt.mark))
        if not reports:
            return self._undisturbed(attempt, judged, changed)
        # A kernel that reported something is another: what checks it may be silent from then on.
        self._lost = True
        console = guest.console(attempt.mark)
        self._tell_others(reports, judged.id, console)
        return complained(judged, [each for each in reports if not each.after], console)

    def _undisturbed(
        self, attempt: Attempt, judged: CaseResult, changed: Sequence[str]
    ) -> CaseResult:
        """A case that has changed what the next one finds did more than it declares."""
        self._lost = self._lost or bool(changed)
        if judged.outcome is not Outcome.PASS:
            return judged
        if forgotten := attempt.forgotten():
            why = f"it left behind: {', '.join(forgotten)}"
        elif changed:
            why = f"it left its guest changed: {changed[0]}"
        else:
            return judged
        return replace(judged, outcome=Outcome.ERROR, blame=Blame.CASE, reason=why)

    def _put_in_order(self, guest: Guest, attempt: Attempt, judged: CaseResult) -> list[str]:
        """Undo what a case did; what it has changed beside, if it began.

        In as few requests as can be: each takes as long as what most of them ask for.
        """
        passed = judged.outcome is Outcome.PASS
        undone = passed and not (attempt.left_things() or attempt.recorded())
        look: list[Call] = []
        if attempt.mark >= 0 and self._surroundings is not None:
            look = self._surroundings.calls(attempt.program, passed=passed)
        seen: list[dict[str, Any]] = []
        if passed:
            seen = attempt.dismiss(look if undone else ())
            if self._multi_id is not None:
                self._multi_id = attempt.multi_id
        else:
            # Where the kernel left the model's path nobody knows what there is.
            guest.call("", [["reset"]])
            self._janitor = Janitor(guest)
            self._crew = Crew(guest, standing=ACTOR)
            self._multi_id = None
        if not seen:
            calls = ([] if undone else self._undoing(attempt, passed=passed)) + look
            seen = guest.call(ACTOR, calls)[len(calls) - len(look) :] if calls else []
        return self._surroundings.changed(seen) if self._surroundings is not None else []

    def _undoing(self, attempt: Attempt, *, passed: bool) -> list[Call]:
        """What undoes what a case left; of one that did not pass it may be anything."""
        assert self._janitor is not None
        calls: list[Call] = []
        if not passed or attempt.left_things():
            calls += self._janitor.repairs(triggers=not passed or attempt.left_triggers())
        if not passed or attempt.recorded():
            calls.append(clearing())
        return calls

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
            self._lost = True
            return False
