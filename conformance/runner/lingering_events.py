"""Events that outlive the processes of their case: the kernel keeps a reference too many.

An event without USER_EVENT_REG_PERSIST is deleted with its last reference, any other can be deleted
then.  References are dropped by work queues, after RCU grace periods.  Therefore dynamic_events is
read after every case, in one request with the invariants, and only what stays is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from conformance.client import tracefs
from conformance.client.executor import Deadline
from conformance.listing.names import plain_names
from conformance.ops.calls import Call
from conformance.ops.decoding.file_views import named_by
from conformance.results.case_result import ENABLERS, LEFTOVER, CaseResult, Evidence, Mismatch
from conformance.results.outcome import OUTCOME_OF, Blame, Level, Outcome
from conformance.runner.guest import Channel
from conformance.runner.guest_setup import LIMIT
from conformance.runner.patience import Patience
from conformance.runner.process_pool import STILL_SET

#: The call whose text ``LingeringEvents.note`` takes.
LOOK: Call = ["slurp", tracefs.DYNAMIC_EVENTS, LIMIT]
# Seconds of an idle machine in which an event is expected to go without being waited for.
_AGE = 1.0
_DOC = "user_events.rst@v6.12: an event that does not persist is deleted with its last reference"


# Makes the program of a case, and names what decides it, when it is asked for.
Program = Callable[[], Evidence]


class Left(Struct, frozen=True):
    """Definitions that a case left, and its program."""

    lines: list[str] = field(default_factory=list)
    program: Program = Evidence


class _Seen(Struct, frozen=True):
    """The case after which an event was first seen, its program, and when to wait for its end."""

    case: str
    program: Program
    age: Deadline


class LingeringEvents:
    """The events of earlier cases in one guest, as last read."""

    def __init__(self, channel: Channel, patience: Patience) -> None:
        self._channel = channel
        self._patience = patience
        self._seen: dict[str, _Seen] = {}
        self._last_case = ""

    def note(self, case_id: str, definitions: str, program: Program = Evidence) -> None:
        """Take the text of dynamic_events after a case with this program."""
        before, self._last_case = self._seen, case_id
        self._seen = {}
        for line in definitions.splitlines():
            self._seen[line] = before.get(line) or self._first(case_id, program)

    def _first(self, case_id: str, program: Program) -> _Seen:
        # Its end is no wait in vain: nothing is known to be wrong yet.
        seconds = _AGE * self._patience.share
        return _Seen(case_id, program, self._channel.deadline(seconds, "the end of an event"))

    def __bool__(self) -> bool:
        """Whether any event was there after the last case."""
        return bool(self._seen)

    @property
    def overdue(self) -> bool:
        """Whether an event has been there for so long that it is worth a wait.

        One whose name is not generated always is: the next case would take it for its own.
        """
        return any(
            seen.age.expired or named_by(line.encode("latin-1")) is None
            for line, seen in self._seen.items()
        )

    def forget(self) -> None:
        """Nothing is left, or what is left has been judged."""
        self._seen = {}

    def by_case(self, left: Sequence[str]) -> dict[str, Left]:
        """What is left, by the case after which it was first seen, else the last one."""
        found: dict[str, Left] = {}
        for line in left:
            seen = self._seen.get(line)
            case, program = (seen.case, seen.program) if seen else (self._last_case, Evidence)
            found.setdefault(case, Left(program=program)).lines.append(line)
        return found


def result_of(case_id: str, left: Left, waited_s: float) -> CaseResult:
    """The result about what is left of a case, although its processes are gone."""
    names = list(map(plain_names, left.lines))
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    allowed = "nothing"
    evidence = left.program()
    spec = f"trace_events_user.c:user_event_put; {evidence.spec}".removesuffix("; ")
    return CaseResult(
        id=f"{case_id}.{LEFTOVER}",
        surface=case_id.partition(".")[0],
        tier="quick",
        outcome=Outcome.FAIL,
        blame=Blame.KERNEL,
        reason=f"{waited_s:.1f} s after the last process of {case_id} ended, dynamic_events still "
        f"lists {names[0]!r}{others}: something holds a reference",
        mismatches=tuple(Mismatch(0, "leftover", allowed, name) for name in names),
        sentence="An event that does not persist is deleted with its last reference.",
        evidence=replace(evidence, docs=_DOC, spec=spec),
    )


def wrong_enablers(case_id: str, wrong: Sequence[str]) -> CaseResult:
    """The result about enablers that were not as the model has them at the end of a case."""
    # The documentation does not promise the last value of a bit.
    silent = all(each.endswith(STILL_SET) for each in wrong)
    level = Level.BEHAVIOUR if silent else Level.CONTRACT
    return CaseResult(
        id=f"{case_id}.{ENABLERS}",
        surface=case_id.partition(".")[0],
        tier="quick",
        outcome=OUTCOME_OF[level],
        level=level,
        blame=Blame.KERNEL,
        reason=f"after {case_id}: {wrong[0]}",
        mismatches=tuple(
            Mismatch(0, "enablers", "unregistered, and its bit clear", each) for each in wrong
        ),
        sentence="The enablers of a case can be unregistered once, which clears their bits.",
        evidence=Evidence(spec="trace_events_user.c:user_events_ioctl_unreg"),
    )
