"""Who performs the steps of a program, and which variable holds a descriptor.

A slot belongs to the process that filled it; fork(2) copies the slots, CLONE_FILES shares them.
The descriptor of each filled slot is a variable of its own, ``fd4`` or ``p2_fd4``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance import ops
from conformance.ops import race, tasks
from conformance.ops.operation import Operation

_MAIN = ("root", "p1")
_HARMLESS = (ops.Pin, ops.Fifo, ops.SubmitWrite)


class Actors:
    """The actors of a program; those that end, or change for good, are processes of their own.

    ``main`` are performed by the first process, ``started`` are processes that it starts first,
    ``made`` those that others make later.
    """

    def __init__(self, program: Sequence[Operation], shown: Sequence[bytes]) -> None:
        """``shown`` are the data that the program compares."""
        every = list(_every(program))
        spawned = [each.actor for each in every if isinstance(each, ops.Spawn)]
        # Records of two tasks: the first process must not be both.
        separate = any(b"task 2" in data for data in shown)
        self.main = [
            actor
            for actor in spawned
            if actor in _MAIN
            and not any(_changes(each) for each in every if each.actor == actor)
            and not (separate and actor != "root")
        ]
        self.started = [actor for actor in spawned if actor not in self.main]
        self.made = list(
            dict.fromkeys(each.child for each in every if isinstance(each, (ops.Fork, tasks.Clone)))
        )

    @property
    def single(self) -> bool:
        """Whether one process performs everything."""
        return not self.started and not self.made

    @property
    def numbered(self) -> dict[str, int]:
        """The number of each actor; 0 is the first process."""
        others = [*self.started, *self.made]
        return dict.fromkeys(self.main, 0) | {n: i for i, n in enumerate(others, 1)}


def _every(program: Sequence[Operation]) -> Iterator[Operation]:
    for operation in program:
        yield from race.steps_of(operation)


def _changes(operation: Operation) -> bool:
    """Whether the first process cannot perform the operation for an actor."""
    if isinstance(operation, tasks.Clone):
        return bool(operation.flags & tasks.CLONE_VM)
    ends = isinstance(operation, (ops.Exit, tasks.Exec, tasks.Die, tasks.ExitTask))
    return ends or (operation.irreversible and not isinstance(operation, _HARMLESS))


class Descriptors:
    """The variable of each slot, as the program goes on."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[int, str]] = {}
        self.names: list[str] = []

    def fill(self, actor: str, slot: int) -> str:
        """The variable of a slot that is filled now."""
        name = f"fd{slot}"
        table = self._tables.setdefault(actor, {})
        if table.get(slot) in (name, f"{actor}_{name}"):
            return table[slot]
        if name in self.names:
            name = f"{actor}_{name}"
        if name not in self.names:
            self.names.append(name)
        table[slot] = name
        return name

    def get(self, actor: str, slot: int) -> str:
        """The variable of a slot, -1 if it was never filled."""
        return self._tables.get(actor, {}).get(slot, "-1")

    def inherit(self, child: str, parent: str, *, shared: bool) -> None:
        """Give a child the slots of its parent."""
        table = self._tables.setdefault(parent, {})
        self._tables[child] = table if shared else dict(table)
