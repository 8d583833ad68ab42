"""The actors of a guest: names, processes, ports and exit statuses.

The supervisor in the guest knows only processes and ports; the names exist on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from vm.agent.encoding import Call, Result
from vm.errors import ActorDied, CallRefused, ChannelBroken


class Actor(Struct, eq=False):
    """A process that performs calls.

    `pid` is its id in the guest.  `status` is its wait status once it has `ended`.
    """

    name: str
    pid: int
    port: int
    ended: bool = False
    status: int | None = None


class Roster:
    """All actors, and the free ones of `ports`.  Port 0 belongs to the supervisor."""

    def __init__(self, ports: int) -> None:
        self._max_actors = ports - 1
        self._free = list(range(self._max_actors, 0, -1))
        self._actors: dict[str, Actor] = {}
        self._by_pid: dict[int, Actor] = {}
        #: Thread ids of tasks, by actor and task name.
        self._tasks: dict[str, dict[str, int]] = {}
        #: Ports of actors that are being made, and statuses of processes that ended meanwhile.
        self._allocated: set[int] = set()
        self._early_ends: dict[int, int] = {}

    def __iter__(self) -> Iterator[Actor]:
        return iter(list(self._actors.values()))

    def as_record(self) -> list[list[Any]]:
        """Name, pid and port of each actor, for a snapshot."""
        return [[actor.name, actor.pid, actor.port] for actor in self]

    def restore(self, record: Sequence[Sequence[Any]]) -> None:
        """Add the actors of a record.  Raises ValueError if it is malformed."""
        for name, pid, port in record:
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
        """The process of an actor or task; 0, whose memory is not readable, for an unknown name."""
        if (actor := self._actors.get(name)) is not None:
            return actor.pid
        found = (tasks[name] for tasks in self._tasks.values() if name in tasks)
        return next(found, 0)

    def allocate_port(self, name: str) -> int:
        """A port for a new actor.  Raises CallRefused if the name or all ports are taken."""
        if not name or name in self._actors:
            raise CallRefused(f"an actor named {name!r} exists")
        if not self._free:
            raise CallRefused(f"no more than {self._max_actors} actors at a time")
        port = self._free.pop()
        self._allocated.add(port)
        return port

    def register(self, name: str, result: Result, port: int) -> None:
        """Add the actor that a call has created, or free its port if the call failed."""
        if result["errno"]:
            self.free_port(port)
            return
        actor = Actor(name, result["value"], port)
        self._add(actor)
        if (status := self._early_ends.pop(actor.pid, None)) is not None:
            self.record_end(actor.pid, status)
        self._settle(port)

    def free_port(self, port: int) -> None:
        """Free an allocated port for which no actor was made.  Idempotent."""
        if port in self._allocated:
            self._free.append(port)
            self._settle(port)

    def _settle(self, port: int) -> None:
        self._allocated.discard(port)
        if not self._allocated:
            # Of processes that were no actors; their ids are used again.
            self._early_ends.clear()

    def record_task(self, actor: Actor, call: Call, result: Result) -> None:
        """Record the thread id of a task.  execve in a thread changes it."""
        match list(call):
            case ["task", name, *_] | ["via", name, ["exec" | "tid", *_]] if result["errno"] == 0:
                self._tasks.setdefault(actor.name, {})[name] = result["value"]

    def record_end(self, pid: object, status: object) -> None:
        """Record the end of a process.  Raises ChannelBroken if the message is malformed."""
        if not isinstance(pid, int) or not isinstance(status, int):
            raise ChannelBroken(f"process {pid!r:.40} ended with status {status!r:.40}")
        actor = self._by_pid.pop(pid, None)
        if actor is None:
            if self._allocated:
                self._early_ends[pid] = status
            return
        actor.ended, actor.status = True, status

    def require_all_alive(self) -> None:
        """Raise ActorDied if an actor has ended between calls."""
        for actor in self:
            if actor.ended:
                raise ActorDied(actor.name, actor.status, "between calls")

    def forget(self, actor: Actor) -> None:
        """Remove an actor that is gone, and free its name and port."""
        self._actors.pop(actor.name, None)
        self._by_pid.pop(actor.pid, None)
        self._tasks.pop(actor.name, None)
        self._free.append(actor.port)

    def _add(self, actor: Actor) -> None:
        self._actors[actor.name] = self._by_pid[actor.pid] = actor
