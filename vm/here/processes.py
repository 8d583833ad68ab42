"""The processes of the agent on the running kernel: a session of their own."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec import Struct

from host.deadline import Deadline
from host.errors import DeadlineExpired
from vm.agent.agent import Agent
from vm.agent.channel import Channel
from vm.guest import here
from vm.kernel_log.stack_traces import frames

#: A task in this state cannot be killed.
_UNINTERRUPTIBLE = "D"
_VM = Path(__file__).parents[2]
_PORT = "uevt"
#: Inherited descriptors are far from those that programs get.
_FIRST_DESCRIPTOR = 200
#: Seconds in which the supervisor ends by itself.
_SHUTDOWN_S = 2.0
#: Functions in which the agent's processes wait for a request or for each other.
_IDLE = frozenset(
    {"unix_stream_read_generic", "do_sys_poll", "do_poll", "do_futex", "futex_wait", "pipe_read"}
)


class StuckProcess(Struct, frozen=True):
    """A process in the kernel: its state, and its kernel stack, innermost function first."""

    pid: int
    state: str
    frames: tuple[str, ...]

    def __str__(self) -> str:
        where = f" in {self.frames[0]}" if self.frames else ""
        return f"process {self.pid} is in state {self.state}{where}"


class AgentProcesses:
    """The supervisor and its actors.  Ends with `end`, or when this process ends."""

    def __init__(self, log: Path, actors: int) -> None:
        """Start the supervisor of at most so many actors; it reports errors to `log`.

        Raises OSError.
        """
        names = [f"{_PORT}{number}" for number in range(actors + 1)]
        with ExitStack() as theirs, ExitStack() as ours, log.open("ab") as errors:
            ends, descriptors = [], []
            for lowest in range(_FIRST_DESCRIPTOR, _FIRST_DESCRIPTOR + len(names)):
                our_end, their_end = socket.socketpair()
                ends.append(ours.enter_context(our_end))
                theirs.enter_context(their_end)
                descriptors.append(fcntl.fcntl(their_end, fcntl.F_DUPFD_CLOEXEC, lowest))
                theirs.callback(os.close, descriptors[-1])
            words = [f"{name}={number}" for name, number in zip(names, descriptors, strict=True)]
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", here.__file__, str(_VM), *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=descriptors,
                env={"PATH": os.defpath},
                start_new_session=True,
            )
            ours.pop_all()
        self.agent = Agent([Channel(end) for end in ends], names)

    @property
    def session(self) -> int:
        """The id of the session: the process id of the supervisor."""
        return self._supervisor.pid

    def alive(self) -> bool:
        """Whether the supervisor runs."""
        return self._supervisor.poll() is None

    def stuck(self) -> list[StuckProcess]:
        """The processes that are in the kernel and not waiting for a request."""
        found = [StuckProcess(pid, _state(pid), _stack(pid)) for pid in _running(self.session)]
        busy = [each for each in found if not _IDLE & set(each.frames)]
        return sorted(busy, key=lambda each: each.state != _UNINTERRUPTIBLE)

    def end(self, deadline: Deadline) -> list[StuckProcess]:
        """End all processes; those that could not be killed.  Idempotent."""
        # The supervisor kills the actors when its port is closed.
        self.agent.close()
        with suppress(subprocess.TimeoutExpired):
            self._supervisor.wait(min(_SHUTDOWN_S, deadline.remaining()))
        left = end_session(self.session, deadline)
        self._supervisor.poll()
        return left


def end_session(session: int, deadline: Deadline) -> list[StuckProcess]:
    """Kill the processes of a session; those that could not be killed by the deadline."""
    with suppress(DeadlineExpired):
        while pids := _running(session):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            deadline.pause()
    return [StuckProcess(pid, _state(pid), _stack(pid)) for pid in _running(session)]


def _running(session: int) -> list[int]:
    """The processes of a session that have not ended, its leader first."""
    return [pid for pid in (session, *here.members(session)) if not _ended(pid)]


def _state(pid: int) -> str:
    """The state of a process, "X" if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return "X"
    return text.rpartition(")")[2].split()[0]


def _ended(pid: int) -> bool:
    return _state(pid) in "ZX"


def _stack(pid: int) -> tuple[str, ...]:
    """The kernel stack of a process; () without CONFIG_STACKTRACE."""
    try:
        text = Path(f"/proc/{pid}/stack").read_text(errors="replace")
    except OSError:
        return ()
    return frames(["", "Call Trace:", *text.splitlines()])
