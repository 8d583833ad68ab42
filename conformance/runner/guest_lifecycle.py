"""The guest that cases run on: had when it is needed, put in order, and had anew.

Nobody here knows where guests come from: a supply hands them out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from conformance.cases.case import Case, Facility, Isolation
from conformance.ops.encode.requests import Call
from conformance.results.case_result import Report, SkipReason
from conformance.runner import cleanup, guest_invariants
from conformance.runner.case_run import Attempt, ModuleRefused, NotJudged
from conformance.runner.cleanup import ACTOR, Janitor, clearing
from conformance.runner.guest_executor import Channel, GuestExecutor
from conformance.runner.guest_invariants import Surroundings
from conformance.runner.kernel_features import facilities_of
from conformance.runner.process_pool import Crew
from conformance.runner.user_modules import UserModules

#: What a keeper asks of a new guest, in this order, where no module of the user's comes between.
OPENING = (*cleanup.OPENING, guest_invariants.OPENING, cleanup.LOOK)
# Seconds of an idle machine in which the leftovers of earlier cases must be gone.
_CLEAN = 5.0


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


class NotBuilt(NotJudged):
    """The kernel under test has no user_events: nothing can be judged."""

    def __init__(self) -> None:
        why = "this kernel has neither user_events_data nor user_events_status"
        super().__init__(SkipReason.NOT_BUILT, why)


class Keeper:
    """Keeps one guest fit for the next case."""

    def __init__(
        self,
        supply: Supply,
        modules: Modules,
        inserted: UserModules,
        promised: frozenset[Facility],
    ) -> None:
        """``modules`` are the suite's, ``inserted`` are the user's; see Runner."""
        self._supply = supply
        self._modules = modules
        self._inserted = inserted
        self._promised = promised
        # What the kernel has beside user_events; None before it was asked.
        self._facilities: frozenset[Facility] | None = None
        # Modules that the guest has loaded.
        self._loaded: set[str] = set()
        self._guest: Guest | None = None
        # How many the guest has: a new one has one.
        self._processors = 1
        self._janitor: Janitor | None = None
        self._surroundings: Surroundings | None = None
        self._crew: Crew | None = None
        # The system-wide counter of multi-format events; None where a case went astray.
        self._multi_id: int | None = 0
        self._not_built: NotBuilt | None = None
        #: The guest serves no other case: who asks for one gets another.
        self.lost = False

    @property
    def guest(self) -> Guest | None:
        """The guest, once there is one."""
        return self._guest

    def executor(self) -> GuestExecutor:
        """What performs a program in the guest."""
        assert self._guest is not None
        assert self._crew is not None
        return GuestExecutor(self._guest, self._crew)

    def ready(self) -> Guest:
        """A guest that answers.  Raises NotBuilt, Unloadable, and what the guest raises."""
        guest, _ = self._ready()
        return guest

    def prepare(self, case: Case) -> Guest:
        """A guest as the case wants it, but for its module.

        Raises NotJudged where the kernel has not what the case uses, and what the guest raises.
        """
        guest, janitor = self._ready()
        self._check(case.facilities, guest)
        if case.processors != self._processors:
            self._processors, self.lost = case.processors, True
            guest, janitor = self._ready()
        if case.isolation in (Isolation.GLOBAL, Isolation.FATAL) and not janitor.wait_until_new(
            _CLEAN
        ):
            guest.pristine(self._processors)
            guest, janitor = self._ready(renewed=True)
        return guest

    def multi_id(self, case: Case) -> int:
        """The number that the next multi-format event gets; 0 where nobody needs to know."""
        if self._multi_id is None and "multi_format" in case.needs:
            assert self._janitor is not None
            self._multi_id = self._janitor.next_multi_id()
        return self._multi_id or 0

    def load(self, module: str) -> None:
        """Have a module of the suite in the guest.  Raises NotJudged, ModuleRefused."""
        if not module or module in self._loaded:
            return
        image = self._modules(module)
        if image is None:
            raise NotJudged(SkipReason.MODULE, f"there is no {module} for this kernel")
        assert self._janitor is not None
        error = self._janitor.load_module(image)
        if error:
            raise ModuleRefused(
                f"the kernel does not load {module}: {os.strerror(error)}; "
                "let it load unsigned modules, or leave these cases out with -k"
            )
        self._loaded.add(module)
        assert self._surroundings is not None
        self._surroundings.accept()

    def put_in_order(self, attempt: Attempt, *, passed: bool) -> list[str]:
        """Undo what a case did; what it has changed beside, if it began.

        In as few requests as can be: each takes as long as what most of them ask for.
        """
        guest = self._guest
        assert guest is not None
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

    def _ready(self, *, renewed: bool = False) -> tuple[Guest, Janitor]:
        if self._not_built is not None:
            raise self._not_built
        self._inserted.check()
        if self._guest is None:
            self._guest = self._supply()
            renewed = True
        elif self.lost:
            self._guest.pristine(self._processors)
            renewed = True
        self.lost = False
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
            self.lost = True
            raise
