"""Lifecycle of the guest: boot on demand, replace when tainted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from conformance.cases.case import Case, Facility, Isolation
from conformance.results.case_result import CaseResult, Report
from conformance.results.outcome import SkipReason
from conformance.runner.case_run import CaseRun
from conformance.runner.guest import Guest, Modules, Unfit
from conformance.runner.guest_invariants import Change
from conformance.runner.guest_setup import GuestSetup
from conformance.runner.host_programs import check_installed
from conformance.runner.judgement import NotInitialised, NotJudged
from conformance.runner.kernel_features import facilities_of
from conformance.runner.patience import Patience
from conformance.runner.prepared_guest import PreparedGuest
from conformance.runner.user_modules import UserModules

_OPTION = "CONFIG_USER_EVENTS"
_NO_FILES = "neither user_events_data nor user_events_status"
# Seconds of an idle machine in which the leftovers of earlier cases must be gone.
_CLEAN = 5.0
# Cases that left anything, after which no others are judged by that: each wait takes time, and a
# kernel that keeps every event shows nothing more.
_MOST_LEFT = 5

Supply = Callable[[], Guest]
# Records kernel reports that no case has, with their console.
RecordLate = Callable[[Sequence[Report], str], None]


class NotBuilt(NotJudged):
    """The kernel under test has no user_events: nothing can be judged."""

    def __init__(self) -> None:
        super().__init__(SkipReason.NOT_BUILT, f"this kernel has {_NO_FILES}")


class GuestLifecycle:
    """Keeps one guest fit for the next case."""

    def __init__(
        self,
        supply: Supply,
        modules: Modules,
        user_modules: UserModules,
        promised: frozenset[Facility],
        patience: Patience,
        unfit: Unfit | None,
        record_late: RecordLate,
    ) -> None:
        """``modules`` are those of the suite; see Runner."""
        self._unfit = unfit
        self._record_late = record_late
        self._supply = supply
        self._modules = modules
        self._user_modules = user_modules
        self._promised = promised
        # Optional features of the kernel; None until a case asks.
        self._facilities: frozenset[Facility] | None = None
        # What the guest is, see Case.guest.
        self._kind = (1, False)
        self._prepared: PreparedGuest | None = None
        # Why no case can begin; made for each, since an exception keeps the frames it passed.
        self._unusable: Callable[[], NotBuilt | NotInitialised] | None = None
        self._patience = patience
        self._results: list[CaseResult] = []
        # Whether the kernel was found to open user_events_data to every user.
        self._exposed = False
        # Number of cases that left anything.
        self._left = 0
        self.guest: Guest | None = None
        #: The guest serves no further case.
        self.must_replace = False
        # What the console shows from now on is of a failure that is recorded.
        self._explained = False

    def ready(self) -> Guest:
        """A guest that answers.

        Raises NotBuilt, NotInitialised, Unloadable, and what the guest raises.
        """
        if self._unusable is not None:
            raise self._unusable()
        self._user_modules.check()
        if self.guest is None:
            self.guest = self._supply()
        elif self.must_replace:
            self.record_late_reports()
            self.guest.pristine(self._kind[0], programs=self._kind[1])
            self._prepared = None
        self.must_replace = self._explained = False
        if self._prepared is None:
            self._prepared = self._prepare(self.guest)
        return self.guest

    def prepare(self, case: Case) -> tuple[Guest, PreparedGuest]:
        """A guest as the case needs it, with its helper module still to be loaded.

        Raises NotJudged where the kernel lacks a feature or the host a program, and what the guest
        raises.
        """
        if self._unfit is not None and (why := self._unfit(case)):
            raise NotJudged(SkipReason.RUNNING_KERNEL, why)
        check_installed(case.programs)
        self._check(case.facilities, self.ready())
        if case.guest != self._kind:
            self.retire()
            self._kind = case.guest
        guest, prepared = self.ready(), self._prepared
        assert prepared is not None
        if case.isolation in (Isolation.GLOBAL, Isolation.FATAL):
            self._judge_leftovers(prepared)
            self.must_replace |= prepared.stays_writable
            guest, prepared = self.ready(), self._prepared
            assert prepared is not None
        return guest, prepared

    def retire(self) -> None:
        """Replace the guest before the next case, after what is left in it was judged."""
        self.settle()
        self.must_replace = True

    def settle(self) -> None:
        """Judge what earlier cases left in the guest, if it serves on."""
        prepared = self._prepared
        if prepared is not None and not self.must_replace and prepared.unsettled:
            self._judge_leftovers(prepared)

    def give_up(self) -> None:
        """Replace the guest before the next case, after a failure that explains its console.

        That may be what a known bug has corrupted, or what was done to find the cause of a hang.
        """
        self.must_replace = self._explained = True

    def record_late_reports(self) -> None:
        """Record the kernel reports that no case has, of a guest that serves no further case."""
        if self.guest is not None:
            reports, console = self.guest.late_reports()
            explained, self._explained = self._explained, False
            if not explained:
                self._record_late(reports, console)

    def take_results(self) -> list[CaseResult]:
        """Results about what the kernel kept of earlier cases, each returned once."""
        taken, self._results = self._results, []
        return taken

    def _judge_leftovers(self, prepared: PreparedGuest) -> None:
        """Fail the earlier cases that left anything, and replace such a guest."""
        found = prepared.settle(0 if self._left >= _MOST_LEFT else _CLEAN)
        if found:
            self.must_replace = True
        if self._left < _MOST_LEFT:
            self._results += found
            self._left += len(found)

    def clean_up(self, run: CaseRun, case_id: str, *, passed: bool) -> tuple[Change, ...]:
        """What a case changed for good, see PreparedGuest; () if the guest is replaced anyway."""
        if self.must_replace or self._prepared is None:
            return ()
        found = self._prepared.clean_up(run, case_id, passed=passed)
        self._results += found.wrong
        if self._prepared.overdue and self._left < _MOST_LEFT:
            self._judge_leftovers(self._prepared)
        return found.changed

    def _prepare(self, guest: Guest) -> PreparedGuest:
        setup = GuestSetup(guest)
        if not setup.has_user_events():
            self._unusable = _without_files(guest, setup)
            raise self._unusable()
        try:
            self._user_modules.load(guest)
        except BaseException:
            # Some of them may be loaded, or the guest may be lost.
            self.must_replace = True
            raise
        shared = self._unfit is not None
        prepared = PreparedGuest(guest, setup, self._modules, self._patience, shared=shared)
        if (exposed := prepared.exposed) is not None and not self._exposed:
            self._exposed = True
            self._results.append(exposed)
        return prepared

    def _check(self, wanted: Sequence[Facility], guest: Guest) -> None:
        """Raise NotJudged where the kernel was built without what a case uses."""
        uncertain = [each for each in wanted if each not in self._promised]
        if not uncertain:
            return
        if self._facilities is None:
            self._facilities = facilities_of(guest)
        lacking = [each.option for each in uncertain if each not in self._facilities]
        if lacking:
            why = f"the kernel has no {' and no '.join(lacking)}"
            raise NotJudged(SkipReason.CONFIG, why)


def _without_files(guest: Guest, setup: GuestSetup) -> Callable[[], NotBuilt | NotInitialised]:
    """Why a kernel has no file of user_events: only its configuration can excuse it."""
    built = guest.configured(_OPTION)
    if built is None and (built := setup.has_symbols()) is None:
        why = f"nothing shows that it was built without {_OPTION}"
    elif built:
        why = f"it was built with {_OPTION}, whose initialisation failed"
    else:
        return NotBuilt
    return partial(NotInitialised, f"the kernel has {_NO_FILES}: {why}")
