"""Lifecycle of the guest: boot on demand, clean up between cases, replace when tainted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from conformance.cases.case import Case, Facility, Isolation
from conformance.ops.calls import Call
from conformance.results.case_result import CaseResult, Report
from conformance.results.outcome import SkipReason
from conformance.runner import cleanup, guest_invariants, guest_setup
from conformance.runner.case_run import CaseRun, ModuleRefused, NotInitialised, NotJudged
from conformance.runner.cleanup import Cleanup
from conformance.runner.guest_executor import Channel, GuestExecutor
from conformance.runner.guest_invariants import Change, GuestInvariants
from conformance.runner.guest_setup import ACTOR, GuestSetup, text_of
from conformance.runner.host_programs import HostPrograms, check_installed
from conformance.runner.kernel_features import facilities_of
from conformance.runner.lingering_events import (
    LOOK,
    LingeringEvents,
    result_of,
    wrong_enablers,
)
from conformance.runner.patience import Patience
from conformance.runner.process_pool import ProcessPool, Returned
from conformance.runner.user_modules import UserModules

#: The first requests to a new guest, in this order, unless user modules are loaded.
OPENING = (*guest_setup.OPENING, guest_invariants.OPENING, cleanup.LOOK)
_OPTION = "CONFIG_USER_EVENTS"
_NO_FILES = "neither user_events_data nor user_events_status"
# Seconds of an idle machine in which the leftovers of earlier cases must be gone.
_CLEAN = 5.0
# Cases that left anything, after which no others are judged by that: each wait takes time, and a
# kernel that keeps every event shows nothing more.
_MOST_LEFT = 5


class Guest(Channel, Protocol):
    """A booted kernel with actors, and a console that is evidence."""

    def mark(self, text: str) -> int:
        """Write a line to the console, which proves that the guest answers; its position."""
        ...

    def console(self, since: int) -> str:
        """The text of the console since a mark."""
        ...

    def reports(self, since: int) -> list[Report]:
        """Kernel reports on the console since a mark, and earlier ones not yet returned.

        ``after`` of the earlier ones names the case during which they appeared.
        """
        ...

    def late_reports(self) -> tuple[list[Report], str]:
        """Kernel reports not yet returned, and the text of the console since the first of them.

        ``after`` names the case that began last; "" on a kernel on which none has.
        """
        ...

    def pristine(self, processors: int = 1, *, programs: bool = False) -> None:
        """Replace the kernel by a newly booted one with this number of processors.

        With ``programs`` it can mount those of the host.
        """
        ...

    def mounting(self) -> Call:
        """The call that mounts the programs of the host, in a guest that can."""
        ...

    def configured(self, option: str) -> bool | None:
        """Whether the kernel was built with an option; None where its configuration is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class Aftermath:
    """Guest-wide state that a case changed for good, and results about its enablers."""

    changed: tuple[Change, ...] = ()
    wrong: tuple[CaseResult, ...] = ()


class SharedKernel(Protocol):
    """A kernel that others use as well, and that cannot be replaced by a new one."""

    def unfit(self, case: Case) -> str:
        """Why it cannot be judged by a case, "" if it can."""
        ...


Supply = Callable[[], Guest]
# Records kernel reports that no case has, with their console.
RecordLate = Callable[[Sequence[Report], str], None]
# The content of a module's file for the kernel under test, None where there is none.
Modules = Callable[[str], bytes | None]


class NotBuilt(NotJudged):
    """The kernel under test has no user_events: nothing can be judged."""

    def __init__(self) -> None:
        super().__init__(SkipReason.NOT_BUILT, f"this kernel has {_NO_FILES}")


class PreparedGuest:
    """A guest that is set up: its processes, its invariants, its modules."""

    def __init__(
        self, guest: Guest, setup: GuestSetup, patience: Patience, shared: SharedKernel | None
    ) -> None:
        self._guest = guest
        self._setup = setup
        self._patience = patience
        self._shared = shared
        self._processes = ProcessPool(guest, standing=ACTOR)
        self._invariants = GuestInvariants(guest, others=shared is not None)
        self._cleanup = Cleanup(guest, self._invariants, patience)
        self._lingering = LingeringEvents(guest, patience)
        self._loaded: set[str] = set()
        self._programs = HostPrograms(guest)
        #: Whether tracefs cannot become read-only any more, see bug tracefs-inode-leak.
        self.stays_writable = False
        # The system-wide counter of multi-format events; None after a deviation from the model.
        self._multi_id: int | None = None if shared else 0

    @property
    def exposed(self) -> CaseResult | None:
        """See GuestInvariants."""
        return self._invariants.exposed

    def executor(self) -> GuestExecutor:
        """An executor of one program."""
        return GuestExecutor(self._guest, self._processes, self._patience)

    def multi_id(self, case: Case) -> int:
        """The number that the next multi-format event gets; 0 if the case does not need it."""
        # A new kernel begins with 0, and the model counts on.
        if self._multi_id is None and (self._shared or "multi_format" in case.needs):
            self._multi_id = self._setup.next_multi_id()
        return self._multi_id or 0

    def load(self, name: str, modules: Modules) -> None:
        """Load a helper module.  Raises NotJudged, ModuleRefused."""
        if not name or name in self._loaded:
            return
        image = modules(name)
        if image is None:
            raise NotJudged(SkipReason.MODULE, f"there is no {name} for this kernel")
        if error := self._setup.load_module(image):
            raise ModuleRefused(
                f"the kernel does not load {name}: {os.strerror(error)}; "
                "let it load unsigned modules, or deselect these cases with -k"
            )
        self._loaded.add(name)
        self._invariants.accept()

    def provide(self, programs: Sequence[str]) -> None:
        """Mount the programs of the host, and try those.  Raises NotJudged."""
        if programs and self._programs.mount(self._guest.mounting()):
            self._invariants.accept()
        self._programs.try_out(programs)

    def clean_up(self, run: CaseRun, case_id: str, *, passed: bool) -> Aftermath:
        """Restore what a case changed, and find what it left.

        A case that touched nothing shared costs one request: its processes are given back, and
        invariants and events are read at once.
        """
        self.stays_writable |= run.leaks_inodes
        left = run.leftovers(passed=passed)
        began = run.mark >= 0
        checks = self._invariants.calls(run.program, passed=passed) if began else []
        checks += [LOOK] if began else []
        left = self._cleanup.detach(left)
        returned = Returned([])
        if passed:
            returned = run.give_back_processes(() if left else checks)
            if self._multi_id is not None:
                self._multi_id = run.multi_id
        else:
            self._reset()
        results = returned.results
        if not results and (left or checks):
            results = self._cleanup.restore(left, checks)
        if not began:
            return Aftermath()
        *invariants, definitions = results
        self._lingering.note(case_id, text_of(definitions), run.evidence)
        wrong = (wrong_enablers(case_id, returned.wrong),) if returned.wrong else ()
        return Aftermath(tuple(self._invariants.changed(invariants)), wrong)

    def settle(self, seconds: float) -> list[CaseResult]:
        """Wait until nothing is left of earlier cases; a result for each that left something."""
        started = time.monotonic()
        left = self._cleanup.wait_until_clean(seconds)
        waited = time.monotonic() - started
        by_case = self._lingering.by_case(left)
        self._lingering.forget()
        return [result_of(case, names, waited) for case, names in by_case.items()]

    @property
    def unsettled(self) -> bool:
        """Whether events were there after the last case."""
        return bool(self._lingering)

    @property
    def overdue(self) -> bool:
        """Whether events have been there for so long that they are worth a wait."""
        return self._lingering.overdue

    def _reset(self) -> None:
        """End every process: after a deviation from the model their state is unknown."""
        self._guest.call("", [["reset"]])
        self._setup = GuestSetup(self._guest)
        self._processes = ProcessPool(self._guest, standing=ACTOR)
        self._multi_id = None


class GuestLifecycle:
    """Keeps one guest fit for the next case."""

    def __init__(
        self,
        supply: Supply,
        modules: Modules,
        user_modules: UserModules,
        promised: frozenset[Facility],
        patience: Patience,
        shared: SharedKernel | None = None,
        record_late: RecordLate = lambda reports, console: None,
    ) -> None:
        """``modules`` are those of the suite; see Runner."""
        self._shared = shared
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
        if self._shared is not None and (why := self._shared.unfit(case)):
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

    def load(self, prepared: PreparedGuest, case: Case) -> None:
        """Load the helper module of a case, and mount its programs.

        Raises NotJudged, ModuleRefused.
        """
        prepared.load(case.module, self._modules)
        prepared.provide(case.programs)

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
        prepared = PreparedGuest(guest, setup, self._patience, self._shared)
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
