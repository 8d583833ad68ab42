"""An actor: one process of the guest that performs calls on itself and answers with their results.

It is a fork of the supervisor (see supervisor.py), or of another actor, and has a port of its own
to the host.  Descriptors that system calls return can be kept in slots, so that the host never has
to know a descriptor's number.  What is asked most is performed by native/, all else here.
"""

from __future__ import annotations

import os
from errno import EBADF

from vm import wire
from vm.guest import engine, syscalls
from vm.guest.port import HostGone, Port

TYPE_CHECKING = False  # as typing's, whose import costs a fifth of a second here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vm.guest.driver import Driver

    #: What a call yields before the watched memory is looked at: value, errno, data.
    Outcome = tuple[int, int, bytes | None]


class BadCall(Exception):
    """The host asked for something that is no call; nothing was performed."""


#: What ends a batch: a call that is none, and a task that failed (task.TaskLost).
_NO_ANSWER = (
    BadCall,
    TypeError,
    ValueError,
    KeyError,
    OverflowError,
    MemoryError,
    OSError,
    RuntimeError,
)


class _BecameChild(Exception):
    """This process is the child of a fork: it leaves its parent's batch."""


class Actor:
    """The process's own view of itself: its port, and its descriptors by slot."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._slots = engine.Slots()
        self._driver: Driver | None = None
        self._forms: dict[str, Callable[..., Outcome]] = {
            "fork": self._fork,
            "list": self._list,
            "status": self._status,
            "submit": self._submit,
            "exit": self._exit,
            "task": self._task,
            "via": self._via,
            "race": self._race,
            "end_tasks": self._end_tasks,
        }

    def serve(self) -> None:
        """Answer requests until the host hangs up.

        Raises HostGone, wire.FrameError, MemoryError.
        """
        self._begin()
        while True:
            event = engine.serve()
            if event == engine.HOST_GONE:
                raise HostGone
            if event in engine.BROKEN:
                raise wire.FrameError(engine.BROKEN[event], "not what a request is")
            if event == engine.NO_MEMORY:
                raise MemoryError
            try:
                if event == engine.TOO_LONG:
                    raise BadCall(f"the answer has no room in {wire.LIMIT} bytes")
                if not engine.note(*self._perform(*engine.left())):
                    raise MemoryError
            except _BecameChild:
                self._begin()
            except _NO_ANSWER as error:
                told = f"{type(error).__name__}: {error}"
                self._port.send({"id": engine.drop(), "error": told})

    def _begin(self) -> None:
        self._port.send({"id": 0, "hello": os.getpid()})
        engine.begin(self._port.fileno())

    def _perform(self, kind: int, where: int, length: int, content: bytes) -> Outcome:
        """A call that the engine leaves to us."""
        if kind == engine.PEEK:
            return _peek(where, length)
        if kind == engine.POKE:
            return *syscalls.store_own(where, content), None
        match wire.unpack(content.rstrip(b"\0")):
            case {"call": [str(name), *rest]} if name in self._forms:
                return self._forms[name](*rest)
            case other:
                raise BadCall(f"no such call: {other!r:.200}")

    def _fork(self, port: str) -> Outcome:
        pid, errno = syscalls.fork()
        if pid == 0:
            # Keep what a child keeps, the descriptors of the slots too, but not the parent's port.
            self._port.close()
            self._port = Port(port)
            raise _BecameChild
        return pid, errno, None

    def _status(self, path: str) -> Outcome:
        """Mode, owner and group of a path, as text."""
        try:
            found = os.stat(path)
        except OSError as error:
            return -1, error.errno or 0, None
        text = f"{found.st_mode:o} {found.st_uid}:{found.st_gid}".encode()
        return len(text), 0, text

    def _list(self, path: str) -> Outcome:
        """The names in a directory, a line each."""
        try:
            names = b"".join(os.fsencode(name) + b"\n" for name in os.listdir(path))
        except OSError as error:
            return -1, error.errno or 0, None
        return len(names), 0, names

    def _submit(self, slot: int, where: int, count: int, offset: int, vector: bool) -> Outcome:
        """Write through io_uring; what its completion says."""
        if slot not in self._slots:
            return -1, EBADF, None
        # Imported when asked: a start must not wait for it.
        from vm.guest import uring

        value, errno = uring.write(self._slots[slot], where, count, offset, vector=vector)
        return value, errno, None

    def _exit(self, status: int) -> Outcome:
        os._exit(status & 0xFF)

    def _task(self, name: str, maker: str | None, flags: int) -> Outcome:
        if self._driver is None:
            # Imported when asked: few actors make tasks, and a boot must not wait for it.
            from vm.guest.driver import Driver

            self._driver = Driver(self._slots, self._port.fileno())
        return self._driver.make(name, maker, flags)

    def _via(self, name: str, call: list[Any]) -> Outcome:
        if self._driver is None:
            raise BadCall(f"no task named {name!r}")
        return self._driver.via(name, call)

    def _race(self, tracks: list[list[Any]]) -> Outcome:
        if self._driver is None:
            raise BadCall("there are no tasks for a race")
        return self._driver.race(tracks)

    def _end_tasks(self) -> Outcome:
        return self._driver.end() if self._driver else (0, 0, None)


def _peek(where: int, length: int) -> Outcome:
    data, errno = syscalls.load_own(where, length)
    return (-1, errno, None) if errno else (length, 0, data)
