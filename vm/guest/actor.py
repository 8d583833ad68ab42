"""An actor: one process of the guest that performs calls on itself and answers with their results.

It is a fork of the supervisor (see supervisor.py), or of another actor, and has a port of its own
to the host.  Descriptors that system calls return can be kept in slots, so that the host never has
to know a descriptor's number.  What is asked most is performed by native/, all else here.
"""

from __future__ import annotations

import os
from errno import EBADF

from vm.guest import native_engine, syscalls
from vm.guest.port import Port
from vm.guest.serving import BadCall, Reborn, Server

TYPE_CHECKING = False  # as typing's, whose import costs a fifth of a second here
if TYPE_CHECKING:
    from typing import Any

    from vm.guest.serving import Outcome
    from vm.guest.task_driver import Driver


class Actor(Server):
    """The process's own view of itself: its port, and its descriptors by slot."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self._slots = native_engine.Slots()
        self._driver: Driver | None = None
        self._forms = {
            "fork": self._fork,
            "submit": self._submit,
            "exit": self._exit,
            "task": self._task,
            "via": self._via,
            "race": self._race,
            "end_tasks": self._end_tasks,
        }

    def serve(self, event: int) -> None:
        """Go on from an event until the host hangs up.  Raises as handle()."""
        while True:
            try:
                self.handle(event)
            except Reborn:
                self.begin()
            event = native_engine.serve()

    def _fork(self, port: str) -> Outcome:
        pid, errno = syscalls.fork()
        if pid == 0:
            # Keep what a child keeps, the descriptors of the slots too, but not the parent's port.
            self._port.close()
            self._port = Port.named(port)
            raise Reborn
        return pid, errno, None

    def _submit(self, slot: int, where: int, count: int, offset: int, vector: bool) -> Outcome:
        """Write through io_uring; what its completion says."""
        if slot not in self._slots:
            return -1, EBADF, None
        # Imported when asked: a start must not wait for it.
        from vm.guest import io_uring

        value, errno = io_uring.write(self._slots[slot], where, count, offset, vector=vector)
        return value, errno, None

    def _exit(self, status: int) -> Outcome:
        os._exit(status & 0xFF)

    def _task(self, name: str, maker: str | None, flags: int) -> Outcome:
        if self._driver is None:
            # Imported when asked: few actors make tasks, and a boot must not wait for it.
            from vm.guest.task_driver import Driver

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
