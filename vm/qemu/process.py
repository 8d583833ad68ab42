"""The QEMU process: started on a leash, watched, and gone when we are done with it."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from host.die_with_parent import __file__ as LEASH


@dataclass(frozen=True, slots=True)
class CpuTime:
    """What the host's scheduler gave the threads of a process until a moment (monotonic).

    Seconds that each ran, and waited for a processor; no threads where the host does not say.
    """

    when: float
    threads: dict[str, tuple[float, float]]


#: SIGKILL needs no more than this, seconds, unless the host is stuck.
_DYING = 10.0


class Qemu:
    """One running QEMU in a process group of its own, killed by the kernel if we end.

    `log` begins with the command and goes on with what QEMU says on its standard error.  Start it
    in the main thread: the kernel takes the end of the starting thread for our end.  A process
    forked from the one that started it may use it as well: reaping it is left to the starter.
    """

    def __init__(self, argv: Sequence[str], log: Path, descriptors: Sequence[int] = ()) -> None:
        leashed = [sys.executable, "-I", "-S", LEASH, str(os.getpid()), *argv]
        with log.open("wb") as said:
            self._said_from = said.write(f"{shlex.join(argv)}\n".encode())
            said.flush()
            self._process = subprocess.Popen(
                leashed,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=descriptors,
                start_new_session=True,
            )
        self._log = log
        self._starter = os.getpid()

    @property
    def pid(self) -> int:
        """QEMU's process id, which is also its process group."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._status() is None

    def wait(self, seconds: float) -> int | None:
        """The exit status (negative: the signal) if it ends within some seconds."""
        if self._starter != os.getpid():
            with suppress(ProcessLookupError), _watched(self.pid) as descriptor:
                select.select([descriptor], [], [], seconds)
            return self._status()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _status(self) -> int | None:
        """The exit status, None while it runs."""
        if self._starter == os.getpid():
            return self._process.poll()
        if self._process.returncode is None:
            # Popen would take a process that it may not wait for for one that ended well.
            self._process.returncode = _unreaped(self.pid)
        return self._process.returncode

    def stopped(self) -> bool:
        """Whether a signal or a debugger holds it."""
        with suppress(OSError):
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2][:1]
            return state in "Tt"
        return False

    def cpu_time(self) -> CpuTime:
        """What its threads have got of the host's processors."""
        threads = {}
        with suppress(OSError, ValueError), os.scandir(f"/proc/{self.pid}/task") as tasks:
            for thread in tasks:
                ran, waited, _ = Path(thread.path, "schedstat").read_text().split()
                threads[thread.name] = int(ran) / 1e9, int(waited) / 1e9
        return CpuTime(time.monotonic(), threads)

    def said(self) -> str:
        """What QEMU itself printed."""
        return self._log.read_bytes()[self._said_from :].decode("utf-8", "replace")

    def kill(self) -> None:
        """End it and reap it.  Idempotent."""
        if self.alive():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        if self.wait(_DYING) is None:
            raise subprocess.TimeoutExpired(self._process.args, _DYING)


@contextmanager
def _watched(pid: int) -> Iterator[int]:
    """A descriptor that can be read once a process has ended.  Raises ProcessLookupError."""
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _unreaped(pid: int) -> int | None:
    """The exit status of another process's child, None while it runs: proc(5), exit_code."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        # Whoever reaps it before we have asked has killed it.
        return -signal.SIGKILL
    return os.waitstatus_to_exitcode(int(fields[-1])) if state in "ZX" else None
