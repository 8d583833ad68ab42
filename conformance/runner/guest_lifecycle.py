"""Lifecycle of the guest: boot on demand, clean up between cases, replace when tainted."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from conformance.cases.case import Case, Facility, Isolation
from conformance.results.case_result import Report, SkipReason
from conformance.runner import cleanup, guest_invariants, guest_setup
from conformance.runner.case_run import CaseRun, ModuleRefused, NotJudged
from conformance.runner.cleanup import Cleanup
from conformance.runner.guest_executor import Channel, GuestExecutor
from conformance.runner.guest_invariants import GuestInvariants
from conformance.runner.guest_setup import ACTOR, GuestSetup
from conformance.runner.kernel_features import facilities_of
from conformance.runner.process_pool import ProcessPool
from conformance.runner.user_modules import UserModules

#: The first requests to a new guest, in this order, unless user modules are loaded.
OPENING = (*guest_setup.OPENING, guest_invariants.OPENING, cleanup.LOOK)
# Seconds of an idle machine in which the leftovers of earlier cases must be gone.
_CLEAN = 5.0


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

    def pristine(self, processors: int = 1) -> None:
        """Replace the kernel by a newly booted one with this number of processors."""
        ...


Supply = Callable[[], Guest]
# The content of a module's file for the kernel under test, None where there is none.
Modules = Callable[[str], bytes | None]


class NotBuilt(NotJudged):
    """The kernel under test has no user_events: nothing can be judged."""

    def __init__(self) -> None:
        why = "this kernel has neither user_events_data nor user_events_status"
        super().__init__(SkipReason.NOT_BUILT, why)


class PreparedGuest:
    """A guest that is set up: its processes, its invariants, its modules."""

    def __init__(self, guest: Guest, setup: GuestSetup) -> None:
        self._guest = guest
        self._setup = setup
        self._processes = ProcessPool(guest, standing=ACTOR)
        self._invariants = GuestInvariants(guest)
        self.cleanup = Cleanup(guest, self._invariants)
        self._loaded: set[str] = set()
        # The system-wide counter of multi-format events; None after a deviation from the model.
        self._multi_id: int | None = 0

    def executor(self) -> GuestExecutor:
        """An executor of one program."""
        return GuestExecutor(self._guest, self._processes)

    def multi_id(self, case: Case) -> int:
        """The number that the next multi-format event gets; 0 if the case does not need it."""
        if self._multi_id is None and "multi_format" in case.needs:
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

    def clean_up(self, run: CaseRun, *, passed: bool) -> list[str]:
        """Restore what a case changed; what could not be restored, a line each.

        A case that touched nothing shared costs one request: its processes are given back and the
        invariants are read at once.
        """
        left = run.leftovers(passed=passed)
        began = run.mark >= 0
        checks = self._invariants.calls(run.program, passed=passed) if began else []
        results: list[dict[str, Any]] = []
        if passed:
            results = run.give_back_processes(() if left else checks)
            if self._multi_id is not None:
                self._multi_id = run.multi_id
        else:
            self._reset()
        if not results and (left or checks):
            results = self.cleanup.restore(left, checks)
        return self._invariants.changed(results)

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
    ) -> None:
        """``modules`` are those of the suite; see Runner."""
        self._supply = supply
        self._modules = modules
        self._user_modules = user_modules
        self._promised = promised
        # Optional features of the kernel; None until a case asks.
        self._facilities: frozenset[Facility] | None = None
        self._processors = 1
        self._prepared: PreparedGuest | None = None
        self._not_built: NotBuilt | None = None
        self.guest: Guest | None = None
        #: The guest serves no further case.
        self.must_replace = False

    def ready(self) -> Guest:
        """A guest that answers.  Raises NotBuilt, Unloadable, and what the guest raises."""
        if self._not_built is not None:
            raise self._not_built
        self._user_modules.check()
        if self.guest is None:
            self.guest = self._supply()
        elif self.must_replace:
            self.guest.pristine(self._processors)
            self._prepared = None
        self.must_replace = False
        if self._prepared is None:
            self._prepared = self._prepare(self.guest)
        return self.guest

    def prepare(self, case: Case) -> tuple[Guest, PreparedGuest]:
        """A guest as the case needs it, with its helper module still to be loaded.

        Raises NotJudged where the kernel lacks a feature, and what the guest raises.
        """
        self._check(case.facilities, self.ready())
        if case.processors != self._processors:
            self._processors, self.must_replace = case.processors, True
        guest, prepared = self.ready(), self._prepared
        assert prepared is not None
        shared = case.isolation in (Isolation.GLOBAL, Isolation.FATAL)
        if shared and not prepared.cleanup.wait_until_clean(_CLEAN):
            self.must_replace = True
            guest, prepared = self.ready(), self._prepared
            assert prepared is not None
        return guest, prepared

    def load(self, prepared: PreparedGuest, case: Case) -> None:
        """Load the helper module of a case.  Raises NotJudged, ModuleRefused."""
        prepared.load(case.module, self._modules)

    def clean_up(self, run: CaseRun, *, passed: bool) -> list[str]:
        """See PreparedGuest; [] if the guest is replaced anyway."""
        if self.must_replace or self._prepared is None:
            return []
        return self._prepared.clean_up(run, passed=passed)

    def _prepare(self, guest: Guest) -> PreparedGuest:
        setup = GuestSetup(guest)
        if not setup.has_user_events():
            self._not_built = NotBuilt()
            raise self._not_built
        try:
            self._user_modules.load(guest)
        except BaseException:
            # Some of them may be loaded, or the guest may be lost.
            self.must_replace = True
            raise
        return PreparedGuest(guest, setup)

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
