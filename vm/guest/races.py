"""Races: several tasks perform their calls repeatedly and concurrently, from one starting point.

A call is a system call, an addition to memory, the creation of a task or, as the last one, an exit.
Creation, exit and system calls that fill a slot require a single pass.
"""

from __future__ import annotations

import json

from vm.guest.serving import BadCall
from vm.guest.task_program import close_gate
from vm.guest.tasks import ADD, SYS_CLONE, SYS_EXIT, SYS_EXIT_GROUP, EmptySlot

TYPE_CHECKING = False  # importing typing takes 0.2 s under emulation
if TYPE_CHECKING:
    from typing import Any, Protocol

    from vm.guest.serving import Outcome
    from vm.guest.tasks import Task

    class TaskTable(Protocol):
        """The tasks of an actor (task_driver.Driver)."""

        def find(self, name: str) -> Task: ...
        def expect(self, name: str, maker: str | None, flags: int) -> Task: ...
        def forget(self, task: Task) -> object: ...


#: close(-1), which fails with EBADF.
_CLOSE_NOTHING = [3, (1 << 64) - 1]


def race(tasks: TaskTable, tracks: list[list[Any]]) -> Outcome:
    """Run several tasks concurrently; the data counts the return values of each call."""
    begun = [Track(tasks, tasks.find(name), *rest) for name, *rest in tracks]
    close_gate(len(begun))
    for track in begun:
        track.begin()
    tallies = json.dumps([track.end() for track in begun]).encode()
    return len(tallies), 0, tallies


class Track:
    """The calls of one task in a race."""

    def __init__(self, tasks: TaskTable, task: Task, passes: int, calls: list[list[Any]]) -> None:
        """Raises BadCall."""
        self._tasks = tasks
        self._task = task
        self._passes = passes
        self._calls = calls
        self._task.clear()
        self._children: list[Task] = []
        self._steps = [self._compiled(*call) for call in calls]
        self._where = 0

    def _compiled(self, form: str, *rest: Any) -> list[int]:
        match form, rest:
            case "sys", (number, arguments, slot) if slot is None or self._passes == 1:
                try:
                    return [number, *self._task.arguments(arguments)[0]]
                except EmptySlot:
                    return _CLOSE_NOTHING
            case "add", (where, amount, times):
                return [ADD, where, amount, times]
            case "task", (child, maker, flags) if self._passes == 1:
                made = self._tasks.expect(child, maker, flags)
                self._children.append(made)
                return [SYS_CLONE, made.flags, 0, made.where]
            case "exit" | "exit_task", (status,) if self._passes == 1:
                return [SYS_EXIT if form == "exit_task" else SYS_EXIT_GROUP, status]
        raise BadCall(f"unknown call in a race: {form!r} {rest!r:.200}")

    def begin(self) -> None:
        """Send the task to the gate."""
        self._where = self._task.begin_race(self._steps, self._passes)

    def end(self) -> list[list[tuple[int, int | None]]]:
        """Wait for the end and return how often each call returned which value."""
        leaving = self._calls[-1][0] in ("exit", "exit_task")
        if leaving:
            self._task.wait()
        else:
            self._task.finish()
        tallies = [self._task.tally(self._where, step) for step in range(len(self._steps))]
        children = iter(self._children)
        for call, tally in zip(self._calls, tallies, strict=True):
            if call[0] == "task":
                next(children).learn_ids(tally[0][1] or 0)
            self._keep(call, tally)
        if leaving:
            # An exit does not return: report success.
            tallies[-1] = [(1, 0)]
            self._tasks.forget(self._task)
        return tallies

    def _keep(self, call: list[Any], tally: list[tuple[int, int | None]]) -> None:
        """Store a descriptor in its slot.  Its number, and a thread id, are reported as 0."""
        if call[0] == "sys" and call[3] is not None and (tally[0][1] or 0) >= 0:
            self._task.slots[call[3]] = tally[0][1] or 0
            tally[0] = (1, 0)
        elif call[0] == "task" and (tally[0][1] or 0) >= 0:
            tally[0] = (1, 0)
