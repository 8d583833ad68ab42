"""The QEMU process: started on a leash, watched, and gone when we are done with it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Shares:
    """What the host's scheduler gave the threads of a process until a moment (monotonic).

    Seconds that each ran, and waited for a processor; no threads where the host does not say.
    """

    when: float
    threads: dict[str, tuple[float, float]]


_LEASH = Path(__file__).parent / "leash.py"
#: SIGKILL needs no more than this, seconds, unless the host is stuck.
_DYING = 10.0


class Qemu:
    """One running QEMU in a process group of its own, killed by the kernel if we end.

    `log` begins with the command and goes on with what QEMU says on its standard error.  Start it
    in the main thread: the kernel takes the end of the starting thread for our end.
    """

    def __init__(self, argv: Sequence[str], log: Path, descriptors: Sequence[int] = ()) -> None:
        leashed = [sys.executable, "-I", "-S", str(_LEASH), str(os.getpid()), *argv]
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

    @property
    def pid(self) -> int:
        """QEMU's process id, which is also its process group."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def wait(self, seconds: float) -> int | None:
        """The exit status (negative: the signal) if it ends within some seconds."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stopped(self) -> bool:
        """Whether a signal or a debugger holds it."""
        with suppress(OSError):
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2][:1]
            return state in "Tt"
        return False

    def shares(self) -> Shares:
        """What its threads have got of the host's processors."""
        threads = {}
        with suppress(OSError, ValueError), os.scandir(f"/proc/{self.pid}/task") as tasks:
            for thread in tasks:
                ran, waited, _ = Path(thread.path, "schedstat").read_text().split()
                threads[thread.name] = int(ran) / 1e9, int(waited) / 1e9
        return Shares(time.monotonic(), threads)

    def said(self) -> str:
        """What QEMU itself printed."""
        return self._log.read_bytes()[self._said_from :].decode("utf-8", "replace")

    def kill(self) -> None:
        """End it and reap it.  Idempotent."""
        if self.alive():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_DYING)
