"""Programs that reached what no earlier one did: kept, mutated, played first the next time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

from conformance import ops
from conformance.client.lockstep import Step
from conformance.model.state.world import World
from conformance.session.explore.choices import Actions
from host.files import write_atomically

_FORMAT = 2
# Operations that only prepare or look.
_SILENT = (ops.Store, ops.Load, ops.Spawn, ops.StoreNumber)

Feature = tuple[object, ...]


def answers(steps: Sequence[Step]) -> set[Feature]:
    """The answers that a program has got, with their reasons.

    The reasons are those of the model, which names one for each branch that refuses.
    """
    found: set[Feature] = set()
    for step in steps:
        if not isinstance(step.operation, _SILENT):
            reason = next((a.reason for a in step.allowed if a.errno == step.seen.errno), "")
            number = min(len(step.allowed), 3)
            found.add((*_kind(step.operation), step.seen.errno, reason, number))
    return found


def states(action: str, world: World) -> set[Feature]:
    """The states of events and processes that an action has reached."""
    found: set[Feature] = set()
    for event in world.table.events:
        held = min(event.references, 4), min(event.perf_count, 2), len(event.tracers)
        found.add((action, "event", event.flags, event.self_reference, *held))
    for process in world.processes.values():
        mine = process.enablers or []
        sharing = [each for each in world.processes.values() if each.memory is process.memory]
        sharers = sum(each.enablers is process.enablers for each in sharing)
        bits = min(len(mine), 3), any(each.freeing for each in mine)
        found.add((action, "process", len(sharing), sharers, *bits, min(len(process.slots), 3)))
    return found


def _kind(operation: ops.Operation) -> Feature:
    match operation:
        case ops.Ioctl():
            return "ioctl", operation.request
        case ops.ReadFile() | ops.WriteFile():
            return type(operation).__name__, operation.path.rpartition("/")[2]
    return (type(operation).__name__,)


class Corpus:
    """The programs of one ABI, in a file; without a file they are forgotten."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._kept: list[Actions] = []
        self._former: frozenset[Actions] = frozenset()
        self._seen: set[Feature] = set()
        self.programs: list[Actions] = []

    def read(self) -> list[Actions]:
        """The programs of the file, which are not in the corpus yet; [] if it is damaged."""
        read = self._stored()
        self._kept, self._former = list(read), frozenset(read)
        return read

    def _stored(self) -> list[Actions]:
        if self._file is None or not self._file.exists():
            return []
        try:
            kept = json.loads(self._file.read_text())
            programs = kept["programs"] if kept["format"] == _FORMAT else []
            return [tuple(tuple(map(int, action)) for action in each) for each in programs]
        except (ValueError, TypeError, KeyError):
            return []

    def passed(self, program: Actions) -> None:
        """A program of the file passed again: what it reached is added, or known."""
        self._kept.remove(program)

    def write(self) -> None:
        """Keep the programs, and those of the file that did not pass again.  Raises OSError.

        What another exploration has added to the file meanwhile stays.
        """
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            added = [each for each in self._stored() if each not in self._former]
            programs = list(dict.fromkeys([*self.programs, *self._kept, *added]))
            write_atomically(self._file, json.dumps({"format": _FORMAT, "programs": programs}))

    def add(self, program: Actions, reached: set[Feature]) -> bool:
        """Keep a program if it reached something new; whether it did."""
        new = reached - self._seen
        if new:
            self._seen |= new
            self.programs.append(program)
        return bool(new)

    @property
    def size(self) -> int:
        """How many different answers and states the programs have reached."""
        return len(self._seen)

    def start_of_one(self, random: Random) -> Actions:
        """The first actions of one of the programs, sometimes without some of them."""
        program = random.choice(self.programs)
        kept = program[: random.randint(1, len(program))]
        if random.randrange(3) == 0:
            kept = tuple(each for each in kept if random.randrange(5))
        return kept
