"""Running a long child process that never outlives us, with its output line by line."""

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

# How often a silent child is looked at, and its waiting user told.
TICK_S = 0.5
# make needs this long to take its children down and to delete half-written targets.
GRACE_S = 10.0
# What a child inherits of our environment.  Neither MAKEFLAGS of an outer make (its job
# server's file descriptors are not ours to hand on) nor ARCH, KBUILD_* or CC may decide
# silently what is built.
INHERITED = ("HOME", "PATH", "TMPDIR", "http_proxy", "https_proxy", "no_proxy")


def environment(**more: str) -> dict[str, str]:
    """The environment of a child: a few inherited names, the C locale, and `more`."""
    return {**inherited(INHERITED), "LC_ALL": "C", **more}


def inherited(names: Iterable[str]) -> dict[str, str]:
    """Those of our variables that are set, for a program that asks for them."""
    return {name: os.environ[name] for name in names if name in os.environ}


def answer(argv: Sequence[str], *, deadline: Deadline, env: Mapping[str, str] | None = None) -> str:
    """What a child that is soon done writes to its standard output, however it ends.

    Raises TookTooLong.
    """
    try:
        said = subprocess.run(
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
    return said.stdout


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
    """Run argv to its end and return its exit status (negative: ended by that signal).

    The child leads a process group of its own, so that Ctrl-C reaches only us and we take the
    whole group down.  If we die without a word (SIGKILL), the kernel sends it SIGTERM, on
    which make ends its own children; a recipe's compiler may finish its one file.
    Raises TookTooLong.
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
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            selector.register(ended, selectors.EVENT_READ)
            while not deadline.expired:
                ready = selector.select(timeout=min(TICK_S, deadline.remaining()))
                files = [key.fileobj for key, _ in ready]
                if child.stdout in files and not output.read():
                    selector.unregister(child.stdout)
                elif ended in files:
                    # Its output is all read: whoever else holds the pipe is not waited for.
                    break
                if on_tick is not None:
                    on_tick()
            else:
                raise TookTooLong(deadline.what, deadline.seconds)
        output.finish()
    return child.returncode


class _Output:
    """What a child says: to the log as it is, to the listener line by line."""

    def __init__(
        self, stream: IO[bytes], log: BinaryIO | None, on_line: Callable[[str], None] | None
    ) -> None:
        self._stream = stream
        self._log = log
        self._on_line = on_line
        self._rest = b""

    def read(self) -> bool:
        """Pass one block on; False at the end of the stream."""
        block = os.read(self._stream.fileno(), 65536)
        if self._log is not None:
            self._log.write(block)
        *lines, self._rest = (self._rest + block).split(b"\n")
        for line in lines:
            self._say(line)
        return bool(block)

    def finish(self) -> None:
        """Pass a last line without a newline on."""
        if self._rest:
            self._say(self._rest)

    def _say(self, line: bytes) -> None:
        if self._on_line is not None:
            self._on_line(line.decode(errors="replace"))


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """Ask, wait a little, then insist: no member of the group is left.

    The child is not reaped before: until then its number cannot become another group's.
    """
    deadline = Deadline(GRACE_S, "end of a child")
    with suppress(ProcessLookupError):
        if not _exited(child):
            os.killpg(child.pid, signal.SIGTERM)
        while not _exited(child) and not deadline.expired:
            time.sleep(0.02)
        os.killpg(child.pid, signal.SIGKILL)


def _exited(child: subprocess.Popen[bytes]) -> bool:
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, child.pid, options) is not None
