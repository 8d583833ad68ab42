"""Programs of the host in the root of vm.guest.shell, run by an actor in the course of a case."""

from __future__ import annotations

import os
import select
from errno import EAGAIN, EBUSY, ECHILD, EIO

from vm.guest import shell

TYPE_CHECKING = False  # importing typing takes 0.2 s under emulation
if TYPE_CHECKING:
    from typing import Any

    from vm.guest.serving import Outcome

#: Output and errors of a program; a file, since its children may keep it open.
_OUTPUT = f"{shell.ROOT}/tmp/output"
_DIRECTORY = "/tmp"
_AUTOMOUNT = f"{shell.ROOT}/sys/kernel/debug/tracing"
_LIMIT = 1 << 16
_KILLED = 128
#: Seconds that one call waits for the end of a program: polling would take its processor.
_WAIT = 1.0


def mount(mounts: list[list[Any]], links: list[list[str]]) -> Outcome:
    """Create the root, once, and mount the host's programs in it."""
    if not os.path.ismount(shell.ROOT):
        shell.prepare()
    try:
        shell.mount_exports(mounts, links)
    except OSError as error:
        return -1, error.errno or EIO, None
    # debugfs mounts tracefs there on first access; the mounts must not change later.
    if os.path.isdir(_AUTOMOUNT):
        os.listdir(_AUTOMOUNT)
    return 0, 0, None


class Programs:
    """The programs of one actor, one at a time."""

    def __init__(self) -> None:
        self._running = 0

    def start(self, words: list[str], environment: dict[str, str]) -> Outcome:
        """Start a program in the root; the value is its process id."""
        if self._running:
            return -1, EBUSY, None
        output = os.open(_OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        source = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._running = os.fork()
        if self._running == 0:
            try:
                os.setsid()
                os.chroot(shell.ROOT)
                os.chdir(_DIRECTORY)
                shell.execute(words, environment, (source, output, output))
            finally:
                os._exit(1)
        os.close(output)
        os.close(source)
        return self._running, 0, None

    def end(self) -> Outcome:
        """The exit status as a shell reports it, and the output; EAGAIN if the program runs on."""
        if not self._running:
            return -1, ECHILD, None
        watched = os.pidfd_open(self._running)
        ended, _, _ = select.select([watched], [], [], _WAIT)
        os.close(watched)
        if not ended:
            return -1, EAGAIN, None
        _, status = os.waitpid(self._running, 0)
        self._running = 0
        code = os.waitstatus_to_exitcode(status)
        with open(_OUTPUT, "rb") as output:
            return code if code >= 0 else _KILLED - code, 0, output.read(_LIMIT)
