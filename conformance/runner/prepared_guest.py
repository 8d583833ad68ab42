"""A guest that is ready for cases: what prepares it, loads for a case, and cleans up behind it."""

from __future__ import annotations

import os
import time

from msgspec import Struct

from conformance.cases.case import Case
from conformance.results.case_result import CaseResult
from conformance.results.outcome import SkipReason
from conformance.runner import cleanup, guest_invariants, guest_setup
from conformance.runner.case_run import CaseRun
from conformance.runner.cleanup import Cleanup
from conformance.runner.guest import Guest, Modules
from conformance.runner.guest_executor import GuestExecutor
from conformance.runner.guest_invariants import Change, GuestInvariants
from conformance.runner.guest_setup import ACTOR, GuestSetup, text_of
from conformance.runner.host_programs import HostPrograms
from conformance.runner.judgement import ModuleRefused, NotJudged
from conformance.runner.lingering_events import (
    LOOK,
    LingeringEvents,
    result_of,
    wrong_enablers,
)
from conformance.runner.patience import Patience
from conformance.runner.process_pool import ProcessPool, Returned

#: The first requests to a new guest, in this order, unless user modules are loaded.
OPENING = (*guest_setup.OPENING, guest_invariants.OPENING, cleanup.LOOK)


class Aftermath(Struct, frozen=True):
    """Guest-wide state that a case changed for good, and results about its enablers."""

    changed: tuple[Change, ...] = ()
    wrong: tuple[CaseResult, ...] = ()


class PreparedGuest:
    """A guest that is set up: its processes, its invariants, its modules."""

    def __init__(
        self,
        guest: Guest,
        setup: GuestSetup,
        modules: Modules,
        patience: Patience,
        *,
        shared: bool,
    ) -> None:
        """Others use a ``shared`` kernel as well."""
        self._guest = guest
        self._setup = setup
        self._modules = modules
        self._patience = patience
        self._shared = shared
        self._processes = ProcessPool(guest, standing=ACTOR)
        self._invariants = GuestInvariants(guest, others=shared)
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

    def load(self, case: Case) -> None:
        """Load the helper module of a case, and mount its programs.

        Raises NotJudged, ModuleRefused.
        """
        if case.module and case.module not in self._loaded:
            self._load_module(case.module)
        if case.programs and self._programs.mount(self._guest.mounting()):
            self._invariants.accept()
        self._programs.try_out(case.programs)

    def _load_module(self, name: str) -> None:
        image = self._modules(name)
        if image is None:
            raise NotJudged(SkipReason.MODULE, f"there is no {name} for this kernel")
        if error := self._setup.load_module(image):
            raise ModuleRefused(
                f"the kernel does not load {name}: {os.strerror(error)}; "
                "let it load unsigned modules, or deselect these cases with -k"
            )
        self._loaded.add(name)
        self._invariants.accept()

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
        """Whether events are worth a wait before the next case, see LingeringEvents."""
        return self._lingering.overdue

    def _reset(self) -> None:
        """End every process: after a deviation from the model their state is unknown."""
        self._guest.call("", [["reset"]])
        self._setup = GuestSetup(self._guest)
        self._processes = ProcessPool(self._guest, standing=ACTOR)
        self._multi_id = None
