"""The actors of a guest as the host knows them: their names, processes and ports, and their ends.

The supervisor knows processes and ports only; names are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vm.agent.encoding import Call, Result
from vm.errors import ActorDied, CallRefused, ChannelBroken


@dataclass(slots=True, eq=False)
class Actor:
    """A process that performs calls: ``pid`` is its id in the guest, ``port`` the number of its
    port.  Once it has ``ended``, ``status`` is its wait status.
    """

    name: str
    pid: int
    port: int
    ended: bool = False
    status: int | None = None


class Roster:
    """Who lives, who has ended, and which of ``ports`` are free.  Port 0 is the supervisor's."""

    def __init__(self, ports: int) -> None:
        self._most = ports - 1
        self._free = list(range(self._most, 0, -1))
        self._actors: dict[str, Actor] = {}
        self._by_pid: dict[int, Actor] = {}
        #: The ids of tasks that actors have made, by actor and name.
        self._tasks: dict[str, dict[str, int]] = {}
        #: Ends of processes we had not heard of yet.
        self._strays: dict[int, int] = {}

    def __iter__(self) -> Iterator[Actor]:
        return iter(list(self._actors.values()))

    def roll(self) -> list[list[Any]]:
        """Name, process id and port of each."""
        return [[actor.name, actor.pid, actor.port] for actor in self]

    def recall(self, roll: Sequence[Sequence[Any]]) -> None:
        """Know those of a roll.  Raises ValueError for what is none."""
        for name, pid, port in roll:
            self._free.remove(port)
            self._add(Actor(str(name), int(pid), port))

    def get(self, name: str) -> Actor | None:
        """The actor of that name."""
        return self._actors.get(name)

    def find(self, name: str) -> Actor:
        """The actor of that name.  Raises CallRefused."""
        actor = self._actors.get(name)
        if actor is None:
            raise CallRefused(f"no actor named {name!r}")
        return actor

    def pid(self, name: str) -> int:
        """The process of an actor or task.  Nobody is process 0: memory that is not readable."""
        if (actor := self._actors.get(name)) is not None:
            return actor.pid
        found = (tasks[name] for tasks in self._tasks.values() if name in tasks)
        return next(found, 0)

    def allot(self, name: str) -> int:
        """A port for a new actor.  Raises CallRefused where the name is taken, or all ports are."""
        if not name or name in self._actors:
            raise CallRefused(f"an actor named {name!r} exists")
        if not self._free:
            raise CallRefused(f"no more than {self._most} actors at a time")
        return self._free.pop()

    def register(self, name: str, result: Result, port: int) -> None:
        """What became of a new actor: it lives, or its port is free again."""
        if result["errno"]:
            self._free.append(port)
            return
        actor = Actor(name, result["value"], port)
        self._add(actor)
        if (status := self._strays.pop(actor.pid, None)) is not None:
            self.note_end(actor.pid, status)

    def note_task(self, actor: Actor, call: Call, result: Result) -> None:
        """Remember which id a task has, which changes when a thread becomes another program."""
        match list(call):
            case ["task", name, *_] | ["via", name, ["exec" | "tid", *_]] if result["errno"] == 0:
                self._tasks.setdefault(actor.name, {})[name] = result["value"]

    def note_end(self, pid: object, status: object) -> None:
        """A process has ended.  Raises ChannelBroken for what is none."""
        if not isinstance(pid, int) or not isinstance(status, int):
            raise ChannelBroken(f"process {pid!r:.40} ended with status {status!r:.40}")
        actor = self._by_pid.pop(pid, None)
        if actor is None:
            self._strays[pid] = status
            return
        actor.ended, actor.status = True, status

    def require_all(self) -> None:
        """Raise ActorDied for one that has ended by itself: whoever asks it next may do so late."""
        for actor in self:
            if actor.ended:
                raise ActorDied(actor.name, actor.status, "while nobody asked it")

    def forget(self, actor: Actor) -> None:
        """An actor is gone: its name and its port are free."""
        self._actors.pop(actor.name, None)
        self._by_pid.pop(actor.pid, None)
        self._tasks.pop(actor.name, None)
        self._free.append(actor.port)

    def forget_strays(self) -> None:
        """Nobody is left whose end could have been told before he was known."""
        self._strays.clear()

    def _add(self, actor: Actor) -> None:
        self._actors[actor.name] = self._by_pid[actor.pid] = actor
