"""The supervisor, process 1: starts, kills and reaps actors, and looks at their memory.

It never waits for an actor and never carries an actor's traffic: each has a port of its own, so
that one round trip costs no switch between processes (milliseconds under emulation).  Every actor
is its child, those forked by actors too (syscalls.fork), and each one's end is told to the host.
What it does while cases run is native/children.c; Python runs where it is asked to describe or to
renew the guest.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what the module signal wraps
import gc
import os
import select
from errno import ETIMEDOUT

from vm.guest import kernel_facts, native_engine, version
from vm.guest.actor import Actor
from vm.guest.port import HostGone, Port, PortMissing, allow_everybody, find
from vm.guest.serving import BadCall, Reborn, Server

TYPE_CHECKING = False  # as typing's, whose import costs a fifth of a second here
if TYPE_CHECKING:
    from typing import NoReturn

    from vm.guest.serving import Outcome

#: How long a process may take to be gone after its signal, milliseconds.
_DYING_MS = 5000
_EVERYBODY = -1


class Supervisor(Server):
    """Process 1: its port, and the ends of its children."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self._woken, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._forms = {
            "reset": self._reset,
            "info": self._info,
        }

    def serve(self) -> None:
        """Serve until the host hangs up.  Raises as handle()."""
        # The module signal would import enum; a handler must exist for the waker to be written.
        _signal.set_wakeup_fd(self._waker)
        _signal.signal(_signal.SIGCHLD, lambda number, frame: None)
        # Collections would copy every page that an actor shares with us, at each of its starts.
        gc.disable()
        gc.freeze()
        self.begin(agent=version.versions() | {version.NATIVE: native_engine.VERSION})
        for name, device in allow_everybody().items():
            native_engine.know(name, device)
        native_engine.supervise(self._woken, self._waker)
        while True:
            event = native_engine.serve()
            if not native_engine.supervises():
                _be_actor(event)
            try:
                self.handle(event)
            except Reborn:
                _be_actor(native_engine.serve())

    def perform(self, kind: int, content: bytes) -> Outcome:
        """A call that the engine leaves to us."""
        if kind == native_engine.SPAWN:
            return self._spawn(content.decode())
        return super().perform(kind, content)

    def _spawn(self, name: str) -> Outcome:
        """An actor whose port was not announced when we began."""
        try:
            device = find(name)
        except PortMissing as error:
            raise BadCall(str(error)) from None
        native_engine.know(name, device)
        pid = os.fork()
        if pid == 0:
            native_engine.be_born(device)
            raise Reborn
        return pid, 0, None

    def _reset(self) -> Outcome:
        """Kill and reap everybody else there is, actor or not; the value counts them."""
        try:
            os.kill(_EVERYBODY, _signal.SIGKILL)
        except ProcessLookupError:
            return 0, 0, None
        reaped = 0
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        try:
            while True:
                if os.waitpid(_EVERYBODY, os.WNOHANG)[0]:
                    reaped += 1
                elif poll.poll(_DYING_MS):
                    os.read(self._woken, 4096)
                else:
                    return -1, ETIMEDOUT, None
        except ChildProcessError:
            return reaped, 0, None

    def _info(self) -> Outcome:
        # This is asked before a state is saved.  Whoever goes on from it, and all actors, have what
        # is imported now; a boot alone must not wait for it.
        from vm.guest import io_uring, task_driver  # noqa: F401

        described = kernel_facts.describe()
        return len(described), 0, described


def _be_actor(event: int) -> NoReturn:
    """In the child, whose port the engine serves already: go on from an event, and leave."""
    try:
        _signal.set_wakeup_fd(-1)
        Actor(Port(native_engine.port())).serve(event)
    except HostGone:
        os._exit(0)
    finally:
        os._exit(1)
