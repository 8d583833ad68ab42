"""Run child processes that never outlive this one, with their output line by line."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, BinaryIO

from host.deadline import Deadline
from kernels.errors import TookTooLong

# The interval of `on_tick` while a child is silent.
TICK_S = 0.5
# make needs this long to end its children and to delete partial targets.
GRACE_S = 10.0
# The variables that a child inherits.  Neither MAKEFLAGS of an outer make (whose job server is not
# open in the child) nor ARCH, KBUILD_* or CC may change what is built.
INHERITED = ("HOME", "PATH", "TMPDIR", "http_proxy", "https_proxy", "no_proxy")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; the child has ended by itself and removed its unfinished files."""


def environment(**more: str) -> dict[str, str]:
    """The environment of a child: INHERITED, the C locale, and `more`."""
    return {**inherited(INHERITED), "LC_ALL": "C", **more}


def inherited(names: Iterable[str]) -> dict[str, str]:
    """Those of the variables that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}


def answer(argv: Sequence[str], *, deadline: Deadline, env: Mapping[str, str] | None = None) -> str:
    """The standard output of a short-lived child, whatever its exit status.

    Raises TookTooLong.
    """
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=deadline.remaining(),
            env=environment() if env is None else env,
        )
    except subprocess.TimeoutExpired:
        raise TookTooLong(deadline.what, deadline.seconds) from None
    return done.stdout


def run(
    argv: Sequence[str],
    *,
    deadline: Deadline,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    log: BinaryIO | None = None,
    on_line: Callable[[str], None] | None = None,
    on_tick: Callable[[], None] | None = None,
) -> int:
    """Run a child and return its exit status (negative: killed by that signal).

    It leads a process group: Ctrl-C reaches only this process, which ends the group.  If this
    process is killed, the kernel sends the child SIGTERM, and make ends its own children.
    Raises TookTooLong, Interrupted.
    """
    child = subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", "--", *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=dict(environment() if env is None else env),
        process_group=0,
    )
    assert child.stdout is not None
    with ExitStack() as cleaning:
        cleaning.enter_context(child.stdout)
        cleaning.callback(child.wait)
        cleaning.callback(_end_group, child)
        output = _Output(child.stdout, log, on_line)
        ended = os.pidfd_open(child.pid)
        cleaning.callback(os.close, ended)
        try:
            _await(ended, output, deadline, on_tick)
        except KeyboardInterrupt as error:
            # A second Ctrl-C must not keep make from removing unfinished files.
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            gently = _end_group(child)
            signal.signal(signal.SIGINT, before)
            if gently:
                raise Interrupted from error
            raise
        output.finish()
    return child.returncode


def _await(
    ended: int, output: _Output, deadline: Deadline, on_tick: Callable[[], None] | None
) -> None:
    """Read the output until the child has ended.  Raises TookTooLong."""
    with selectors.DefaultSelector() as selector:
        selector.register(output.stream, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        while not deadline.expired:
            ready = selector.select(timeout=min(TICK_S, deadline.remaining()))
            files = [key.fileobj for key, _ in ready]
            if output.stream in files and not output.read():
                selector.unregister(output.stream)
            elif ended in files:
                # All output is read; do not wait for other processes that hold the pipe.
                return
            if on_tick is not None:
                on_tick()
    raise TookTooLong(deadline.what, deadline.seconds)


class _Output:
    """The output of a child: to the log unchanged, to the listener by lines."""

    def __init__(
        self, stream: IO[bytes], log: BinaryIO | None, on_line: Callable[[str], None] | None
    ) -> None:
        self.stream = stream
        self._log = log
        self._on_line = on_line
        self._rest = b""

    def read(self) -> bool:
        """Handle one block; False at the end of the stream."""
        block = os.read(self.stream.fileno(), 65536)
        if self._log is not None:
            self._log.write(block)
        *lines, self._rest = (self._rest + block).split(b"\n")
        for line in lines:
            self._pass_on(line)
        return bool(block)

    def finish(self) -> None:
        """Handle a last line without a newline."""
        if self._rest:
            self._pass_on(self._rest)

    def _pass_on(self, line: bytes) -> None:
        if self._on_line is not None:
            self._on_line(line.decode(errors="replace"))


def _end_group(child: subprocess.Popen[bytes]) -> bool:
    """End all members of the group: SIGTERM, some time, then SIGKILL.

    Returns whether the child needed no SIGKILL.  It is not reaped before, so that no other group
    gets its number.
    """
    gently = True
    deadline = Deadline(GRACE_S, "end of a child")
    with suppress(ProcessLookupError):
        if not _exited(child):
            os.killpg(child.pid, signal.SIGTERM)
        while not _exited(child) and not deadline.expired:
            time.sleep(0.02)
        gently = _exited(child)
        os.killpg(child.pid, signal.SIGKILL)
    return gently


def _exited(child: subprocess.Popen[bytes]) -> bool:
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, child.pid, options) is not None
