"""The QEMU process: start, watch and kill it.  It dies with its parent."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from host.die_with_parent import __file__ as DIE_WITH_PARENT


class CpuTime(Struct, frozen=True):
    """Scheduler statistics of a process at a moment of the monotonic clock.

    `threads` maps a thread id to the seconds that it ran and that it waited for a processor; it is
    empty if the host does not report them.
    """

    when: float
    threads: dict[str, tuple[float, float]]


#: Time limit in seconds for a process to end after SIGKILL.
_KILL_S = 10.0


class Qemu:
    """A running QEMU in its own process group.

    `log` receives the command and the standard error of QEMU.  Start it in the main thread: the
    kernel kills QEMU when the starting thread ends.  A forked process may use the object too, but
    only the starting process reaps QEMU.
    """

    def __init__(self, argv: Sequence[str], log: Path, descriptors: Sequence[int] = ()) -> None:
        starter = [sys.executable, "-I", "-S", DIE_WITH_PARENT, str(os.getpid())]
        with log.open("wb") as output:
            self._output_from = output.write(os.fsencode(f"{shlex.join(argv)}\n"))
            output.flush()
            self._process = subprocess.Popen(
                [*starter, *argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=descriptors,
                start_new_session=True,
            )
        self._log = log
        self._starter = os.getpid()

    @property
    def pid(self) -> int:
        """The process id of QEMU, which is also its process group."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether QEMU still runs."""
        return self._status() is None

    def wait(self, seconds: float) -> int | None:
        """The exit status (negative for a signal), None if QEMU still runs after some seconds."""
        if self._starter != os.getpid():
            with (
                suppress(ProcessLookupError),
                os.fdopen(os.pidfd_open(self.pid), "rb", buffering=0) as end,
            ):
                select.select([end], [], [], seconds)
            return self._status()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _status(self) -> int | None:
        """The exit status, None while QEMU runs."""
        if self._starter == os.getpid():
            return self._process.poll()
        if self._process.returncode is None:
            # Popen.poll reports 0 for a process that is not its own child.
            self._process.returncode = _unreaped_status(self.pid)
        return self._process.returncode

    def stopped(self) -> bool:
        """Whether a signal or a debugger has stopped QEMU."""
        with suppress(OSError):
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2][:1]
            return state in "Tt"
        return False

    def cpu_time(self) -> CpuTime:
        """The CPU time of its threads until now."""
        threads = {}
        with suppress(OSError, ValueError), os.scandir(f"/proc/{self.pid}/task") as tasks:
            for thread in tasks:
                ran, waited, _ = Path(thread.path, "schedstat").read_text().split()
                threads[thread.name] = int(ran) / 1e9, int(waited) / 1e9
        return CpuTime(time.monotonic(), threads)

    def output(self) -> str:
        """What QEMU has printed."""
        return self._log.read_bytes()[self._output_from :].decode("utf-8", "replace")

    def kill(self) -> None:
        """Kill QEMU and reap it.  Idempotent."""
        if self.alive():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        if self.wait(_KILL_S) is None:
            raise subprocess.TimeoutExpired(self._process.args, _KILL_S)


def _unreaped_status(pid: int) -> int | None:
    """The exit status of another process's child, None while it runs (proc(5): exit_code)."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        # Its parent has killed and reaped it.
        return -signal.SIGKILL
    return os.waitstatus_to_exitcode(int(fields[-1])) if state in "ZX" else None
