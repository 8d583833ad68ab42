"""The supervisor, process 1: starts, kills and reaps actors, and looks at their memory.

It never waits for an actor and never carries an actor's traffic: each has a port of its own, so
that one round trip costs no switch between processes (milliseconds under emulation).  Every actor
is its child, those forked by actors too (syscalls.fork), and each one's end is told to the host.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what the module signal wraps
import gc
import os
import select
from errno import ETIMEDOUT

from vm.guest import engine, facts, syscalls, version
from vm.guest.actor import Actor, BadCall
from vm.guest.port import HostGone, Port, allow_everybody

TYPE_CHECKING = False  # as typing's, whose import costs a fifth of a second here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vm.guest.actor import Outcome

#: How long a process may take to be gone after its signal, milliseconds.
_DYING_MS = 5000
_EVERYBODY = -1


class Supervisor:
    """The loop of process 1 over its port and the ends of its children."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._woken, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        # Opened when it is needed.
        self._log: int | None = None
        self._poll = select.poll()
        self._poll.register(port.fileno(), select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        self._forms: dict[str, Callable[..., Outcome]] = {
            "spawn": self._spawn,
            "kill": self._kill,
            "reset": self._reset,
            "look": self._look,
            "ping": self._ping,
            "mark": self._mark,
            "info": self._info,
            "wake": self._wake,
        }

    def serve(self) -> None:
        """Serve until the host hangs up.  Raises HostGone, wire.FrameError."""
        # The module signal would import enum; a handler must exist for the waker to be written.
        _signal.set_wakeup_fd(self._waker)
        _signal.signal(_signal.SIGCHLD, lambda number, frame: None)
        # Collections would copy every page that an actor shares with us, at each of its starts.
        gc.disable()
        gc.freeze()
        known = version.versions() | {version.NATIVE: engine.VERSION}
        self._port.send({"id": 0, "hello": os.getpid(), "agent": known})
        allow_everybody()
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._woken:
                    os.read(self._woken, 4096)
                    self._tell_ends()
                else:
                    self._hear()

    def _hear(self) -> None:
        self._answer(self._port.receive())
        while self._port.more:
            self._answer(self._port.receive())

    def _answer(self, request: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"id": request["id"]}
        try:
            results: list[dict[str, Any]] = []
            for call in request["calls"]:
                value, errno, data = self._forms[call[0]](*call[1:])
                shown = None if data is None else data.hex()
                results.append({"value": value, "errno": errno, "data": shown})
            reply["results"] = results
        except (BadCall, TypeError, ValueError, KeyError, OSError) as error:
            reply["error"] = f"{type(error).__name__}: {error}"
        self._port.send(reply)

    def _tell_ends(self) -> None:
        try:
            while True:
                pid, status = os.waitpid(_EVERYBODY, os.WNOHANG)
                if pid == 0:
                    return
                self._port.send({"id": 0, "ended": pid, "status": status})
        except ChildProcessError:
            return

    def _spawn(self, port: str) -> Outcome:
        pid = os.fork()
        if pid == 0:
            self._become(port)
        return pid, 0, None

    def _become(self, port: str) -> None:
        """In the child: hold nothing of the supervisor's, serve as an actor, and leave."""
        try:
            _signal.set_wakeup_fd(-1)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            for descriptor in (self._woken, self._waker, self._log):
                if descriptor is not None:
                    os.close(descriptor)
            self._port.close()
            Actor(Port(port)).serve()
        except HostGone:
            os._exit(0)
        finally:
            os._exit(1)

    def _kill(self, pid: int, signal: int) -> Outcome:
        """The value is the wait status; ETIMEDOUT when the signal did not end the process."""
        try:
            going = os.pidfd_open(pid)
        except OSError as error:
            return -1, error.errno or 0, None
        try:
            os.kill(pid, signal)
            poll = select.poll()
            poll.register(going, select.POLLIN)
            if not poll.poll(_DYING_MS):
                return -1, ETIMEDOUT, None
            return os.waitpid(pid, 0)[1], 0, None
        except OSError as error:
            return -1, error.errno or 0, None
        finally:
            os.close(going)

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

    def _look(self, pid: int, where: int, length: int) -> Outcome:
        data, errno = syscalls.read_memory(pid, where, length)
        return (-1, errno, None) if errno else (length, 0, data)

    def _ping(self) -> Outcome:
        return 0, 0, None

    def _mark(self, text: str) -> Outcome:
        # Without its newline a record is held back until the next one (printk.c, vprintk_store).
        line = b"<5>" + text.encode("utf-8", "replace") + b"\n"
        if self._log is None:
            self._log = os.open("/dev/kmsg", os.O_WRONLY | os.O_CLOEXEC)
        return os.write(self._log, line), 0, None

    def _info(self) -> Outcome:
        described = facts.describe()
        return len(described), 0, described

    def _wake(self, nonce: str, nanoseconds: int, seed: str) -> Outcome:
        # Imported when asked: a boot must not wait for it.
        from vm.guest import waking

        told = waking.wake(nonce, nanoseconds, bytes.fromhex(seed))
        return len(told), 0, told
