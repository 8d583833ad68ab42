"""The supervisor, process 1 of a guest: start, kill and reap actors, and read their memory.

It never waits for an actor and never forwards its traffic: every actor has its own port, which
saves a process switch per round trip (milliseconds under emulation).  All actors are its children,
also those forked by actors (syscalls.fork), and it reports their exits to the host.
native/children.c does most of the work; Python handles reset and info.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what the module signal wraps
import gc
import os
import select
from errno import ETIMEDOUT

from vm import wire
from vm.guest import kernel_facts, native_engine, version
from vm.guest.actor import Actor
from vm.guest.port import HostGone, Port, open_to_all_users
from vm.guest.serving import Server

TYPE_CHECKING = False  # importing typing takes 0.2 s under emulation
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from vm.guest.serving import Outcome

#: Limit for processes to exit after a signal, milliseconds.
_EXIT_MS = 5000
_EVERYBODY = -1


def kill_everybody() -> None:
    """Kill all other processes of a guest, of which this is process 1."""
    if os.getpid() != 1:
        # Anywhere else this would kill the user's processes.
        raise RuntimeError("only process 1 kills everybody")
    try:
        os.kill(_EVERYBODY, _signal.SIGKILL)
    except ProcessLookupError:
        pass


class Supervisor(Server):
    """Process 1: its port, and a pipe that SIGCHLD writes to.

    `ports` are the names of all ports, its own first; the others are for actors.  `kill_all` sends
    SIGKILL to all other processes of the guest.
    """

    def __init__(self, ports: Sequence[str], kill_all: Callable[[], None] = kill_everybody) -> None:
        """Raises PortMissing, OSError."""
        super().__init__(Port.named(ports[0]))
        self._actor_ports = ports[1:]
        self._kill_all = kill_all
        self._sigchld_read, self._sigchld_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._handlers = {"reset": self._reset, "info": self._info}

    def serve(self) -> None:
        """Serve until the host hangs up.  Raises as handle()."""
        # The module signal would import enum.  The wakeup fd requires a handler.
        _signal.set_wakeup_fd(self._sigchld_write)
        _signal.signal(_signal.SIGCHLD, lambda number, frame: None)
        # A collection in an actor would copy the pages that it shares with the supervisor.
        gc.disable()
        gc.freeze()
        for name in self._actor_ports:
            native_engine.register_port(name, open_to_all_users(name))
        self.begin(agent=version.versions() | {version.NATIVE: native_engine.VERSION})
        native_engine.supervise(self._sigchld_read, self._sigchld_write)
        while True:
            event = native_engine.serve()
            if not native_engine.supervises():
                _be_actor(event)
            self.handle(event)

    def _reset(self) -> Outcome:
        """Kill and reap all other processes; the value is their number."""
        reaped = 0
        poll = select.poll()
        poll.register(self._sigchld_read, select.POLLIN)
        try:
            self._kill_all()
            while True:
                if os.waitpid(_EVERYBODY, os.WNOHANG)[0]:
                    reaped += 1
                elif poll.poll(_EXIT_MS):
                    os.read(self._sigchld_read, 4096)
                    self._kill_all()
                else:
                    return -1, ETIMEDOUT, None
        except ChildProcessError:
            return reaped, 0, None

    def _info(self) -> Outcome:
        # "info" is called before a snapshot is saved: restored guests have these modules loaded,
        # and the boot does not wait for them.
        from vm.guest import io_uring, races, task_driver  # noqa: F401

        described = kernel_facts.describe()
        return len(described), 0, described


def serve_host(ports: Sequence[str], kill_all: Callable[[], None] = kill_everybody) -> None:
    """Serve until the host hangs up, or report its corrupt frame.  Raises as Supervisor."""
    try:
        Supervisor(ports, kill_all).serve()
    except HostGone:
        pass
    except wire.FrameError as error:
        os.write(2, f"uevt: the host's {error}\n".encode())


def _be_actor(event: int) -> NoReturn:
    """Serve as an actor in a forked child, and exit."""
    try:
        _signal.set_wakeup_fd(-1)
        Actor(Port(native_engine.port())).serve(event)
    except HostGone:
        os._exit(0)
    finally:
        os._exit(1)
