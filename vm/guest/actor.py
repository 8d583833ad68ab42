"""An actor: a process of the guest that performs calls and returns their results.

It is a fork of the supervisor or of another actor and has its own port.  Descriptors are kept in
slots, so that the host needs no descriptor numbers.  native/ performs the frequent calls.
"""

from __future__ import annotations

import os
from errno import EBADF, ECHILD

from vm.guest import native_engine, syscalls
from vm.guest.port import Port, find
from vm.guest.serving import BadCall, Forked, Server

TYPE_CHECKING = False  # importing typing takes 0.2 s under emulation
if TYPE_CHECKING:
    from typing import Any

    from vm.guest.programs import Programs
    from vm.guest.serving import Outcome
    from vm.guest.task_driver import Driver


class Actor(Server):
    """The port, descriptors and tasks of this process."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self._slots = native_engine.Slots()
        self._driver: Driver | None = None
        self._programs: Programs | None = None
        # The relay of the last program of the user, see vm.guest.shell.
        self._relay = 0
        self._handlers = {
            "fork": self._fork,
            "submit": self._submit,
            "exit": self._exit,
            "task": self._task,
            "via": self._via,
            "race": self._race,
            "end_tasks": self._end_tasks,
            "prepare_shell": self._prepare_shell,
            "shell": self._shell,
            "mount_programs": self._mount_programs,
            "start_program": self._start_program,
            "end_program": self._end_program,
        }

    def serve(self, event: int) -> None:
        """Serve, starting with an event, until the host hangs up.  Raises as handle()."""
        while True:
            try:
                self.handle(event)
            except Forked:
                self.begin()
            event = native_engine.serve()

    def _fork(self, port: str) -> Outcome:
        native_engine.drain_device(find(port))
        pid, errno = syscalls.fork()
        if pid == 0:
            # The child inherits all but the parent's port.
            self._port.close()
            self._port = Port.named(port)
            raise Forked
        return pid, errno, None

    def _submit(
        self, slot: int, where: int, count: int, offset: int, vector: bool, registered: bool
    ) -> Outcome:
        """Write through io_uring and return its completion."""
        if slot not in self._slots:
            return -1, EBADF, None
        # Imported on demand to keep the start fast.
        from vm.guest import io_uring

        value, errno = io_uring.write(
            self._slots[slot], where, count, offset, vector=vector, registered=registered
        )
        return value, errno, None

    def _exit(self, status: int) -> Outcome:
        os._exit(status & 0xFF)

    def _task(self, name: str, maker: str | None, flags: int) -> Outcome:
        if self._driver is None:
            # Imported on demand to keep the start fast.
            from vm.guest.task_driver import Driver

            self._driver = Driver(self._slots, self._port.fileno())
        return self._driver.make(name, maker, flags)

    def _via(self, name: str, call: list[Any]) -> Outcome:
        if self._driver is None:
            raise BadCall(f"no task named {name!r}")
        return self._driver.via(name, call)

    def _race(self, tracks: list[list[Any]]) -> Outcome:
        if self._driver is None:
            raise BadCall("a race needs tasks")
        from vm.guest import races

        return races.race(self._driver, tracks)

    def _prepare_shell(self) -> Outcome:
        # Imported on demand to keep the start fast.
        from vm.guest import shell

        shell.prepare()
        return 0, 0, None

    def _shell(
        self,
        stream: str,
        mounts: list[list[Any]],
        links: list[list[str]],
        words: list[str],
        environment: dict[str, str],
        size: list[int] | None,
    ) -> Outcome:
        from vm.guest import shell

        shell.mount_exports(mounts, links)
        last, self._relay = self._relay, 0
        if last:
            # It has sent its last frame, and has the port open until it ends.
            os.waitpid(last, 0)
        port = Port.named(stream)
        self._relay = shell.start(port.fileno(), words, environment, size)
        port.close()
        return self._relay, 0, None

    def _mount_programs(self, mounts: list[list[Any]], links: list[list[str]]) -> Outcome:
        from vm.guest import programs

        return programs.mount(mounts, links)

    def _start_program(self, words: list[str], environment: dict[str, str]) -> Outcome:
        if self._programs is None:
            from vm.guest.programs import Programs

            self._programs = Programs()
        return self._programs.start(words, environment)

    def _end_program(self) -> Outcome:
        if self._programs is None:
            return -1, ECHILD, None
        return self._programs.end()

    def _end_tasks(self) -> Outcome:
        return self._driver.end() if self._driver else (0, 0, None)
