"""Spreads cases over processes that each have a guest of their own, for pytest is one thread.

They are forked from the session once it has collected: what takes long is done once.  Cases are
handed out one by one, in the order in which they are to run, so that all processes end at about
the same time.  A process that dies is replaced.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import NoReturn

import pytest

from conformance.session.controller.controller import Controller
from conformance.session.pool.prelaunch import Prelaunch
from conformance.session.pool.worker_process import (
    CaseDone,
    ForwardedReport,
    ReportForwarder,
    WorkerFailed,
    WorkerReady,
    serve,
    start,
)
from conformance.session.worker.case_hooks import CaseHooks

# The name that this plugin is registered by.
NAME = "uevt-spread"
# Seconds without a word after which a process is given up: a case, its second attempt and their
# boots have deadlines of their own, which come to less on the slowest of hosts.
_SILENT_S = 1800.0
# Seconds in which the processes have to end their guests; and those that were told to stop.
_LEAVING_S = 60.0
_ASKED_S = 5.0
# So many processes in a row may end without a case that has.
_FRUITLESS = 3
_WELL = "exit code 0"


class PoolFailed(Exception):
    """No process lives long enough to run a case."""


@dataclass(slots=True, eq=False)
class _WorkerProcess:
    """One of the processes, from our side.

    ``ready`` says that it can be handed cases; ``handed`` are those that it was, of which it runs
    the first; ``heard`` is when it last said something, by the monotonic clock.
    """

    name: str
    pid: int
    end: Connection
    ready: bool = False
    handed: deque[int] = field(default_factory=deque)
    heard: float = field(default_factory=time.monotonic)


class WorkerPool:
    """Runs the cases of a session in ``number`` processes.

    ``prepare`` lets a forked process be one that runs cases, by its name.  Guests come up ``ahead``
    of them, and ``meanwhile`` is what all processes need: both while cases are collected.
    """

    def __init__(
        self,
        config: pytest.Config,
        controller: Controller,
        number: int,
        prepare: Callable[[str], CaseHooks],
        prelaunch: Prelaunch,
        meanwhile: Callable[[], None],
    ) -> None:
        self._config = config
        self._controller = controller
        self._ahead = prelaunch
        self._meanwhile = threading.Thread(target=meanwhile)
        self._number = number
        self._prepare = prepare
        self._processes: list[_WorkerProcess] = []
        self._started = 0
        # The cases by pytest's ids; those that nobody has, and all that have not ended.
        self._ids: tuple[str, ...] = ()
        self._left: deque[int] = deque()
        self._open: set[int] = set()
        self._fruitless = 0
        # How often a process ended that was handed a case, which was to be run once more.
        self._ends: Counter[int] = Counter()
        self._dismissed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Begin with what has no need of cases."""
        # Whoever asks for some cases may have asked for one.
        for number in range(1 if self._config.option.keyword else self._number):
            self._ahead.launch(_name(number))
        self._meanwhile.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Have all cases run.

        Raises CannotSpread, and as pytest's own loop where pytest is to stop.
        """
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        self._ids = tuple(item.nodeid for item in session.items)
        self._left.extend(range(len(self._ids)))
        self._open.update(self._left)
        # Whoever forks is to be alone.
        self._meanwhile.join()
        with self._ending_all():
            for number in range(len(self._open), self._number):
                self._ahead.end(_name(number))
            while self._open:
                # Whoever has less to do than the others may have waited for what another left.
                for process in self._processes:
                    self._hand_out(process)
                while self._left and len(self._processes) < min(self._number, len(self._open)):
                    self._start(session)
                self._listen()
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)
            self._dismiss()
        return True

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
        """One line says what no traceback would explain."""
        if not isinstance(excinfo.value, PoolFailed):
            return False
        sys.stderr.write(f"uevt: {excinfo.value}\n")
        return True

    def pytest_unconfigure(self) -> None:
        """Whatever has ended us before a process was forked: its guest is to end too."""
        self._ahead.end_all()

    def _start(self, session: pytest.Session) -> None:
        name = _name(self._started)
        self._started += 1

        def serve_forever(other: Connection) -> NoReturn:
            serve(
                session,
                ReportForwarder(self._config, name, other),
                other,
                lambda: self._prepare(name),
            )

        pid, end = start(serve_forever, [process.end for process in self._processes])
        self._processes.append(_WorkerProcess(name, pid, end))
        self._ahead.leave(name)

    def _listen(self, limit: float = math.inf) -> None:
        """Wait for a word of a process, until a moment, and act on it."""
        ends = {process.end: process for process in self._processes}
        silent = min(process.heard for process in self._processes) + _SILENT_S
        for end in wait(list(ends), max(0.0, min(limit, silent) - time.monotonic())):
            assert isinstance(end, Connection)
            self._hear(ends[end])
        for process in list(self._processes):
            if time.monotonic() - process.heard > _SILENT_S:
                self._end(process, f"it said nothing for {_SILENT_S:g} s")

    def _hear(self, process: _WorkerProcess) -> None:
        process.heard = time.monotonic()
        try:
            word = process.end.recv()
        except (EOFError, OSError):
            self._lose(process)
            return
        match word:
            case ForwardedReport(plain):
                from_plain = self._config.hook.pytest_report_from_serializable
                report = from_plain(config=self._config, data=plain)
                self._config.hook.pytest_runtest_logreport(report=report)
            case WorkerReady():
                process.ready = True
            case CaseDone():
                self._fruitless = 0
                self._open.discard(process.handed.popleft())
            case WorkerFailed(text):
                self._lose(process, text)

    def _hand_out(self, process: _WorkerProcess) -> None:
        """Let a process have a case to run, and one more while there are many."""
        many = len(self._left) > 2 * self._number
        with suppress(OSError):
            while process.ready and self._left and len(process.handed) < (2 if many else 1):
                process.handed.append(self._left.popleft())
                process.end.send(process.handed[-1])

    def _end(self, process: _WorkerProcess, why: str) -> None:
        os.kill(process.pid, signal.SIGKILL)
        self._lose(process, why)

    def _lose(self, process: _WorkerProcess, why: str = "") -> None:
        """A process ends.  Its case is run once more, but not for ever."""
        self._processes.remove(process)
        process.end.close()
        how = _end_of(process.pid, _ASKED_S)
        self._ahead.end(process.name)
        if self._dismissed and how == _WELL:
            return
        if self._config.pluginmanager.is_blocked("terminalreporter"):
            sys.stderr.write(f"uevt: process {process.name} ended: {why or how}\n")
        if not process.handed:
            self._fruitless += 1
            if self._fruitless == _FRUITLESS:
                raise PoolFailed(f"{_FRUITLESS} processes in a row ended early: {why or how}")
            return
        at = process.handed[0]
        if not self._controller.process_died(self._ids[at]):
            self._open.discard(process.handed.popleft())
        else:
            self._ends[at] += 1
            if self._ends[at] == _FRUITLESS:
                # Of one that began it would have been enough before.
                raise PoolFailed(
                    f"{_FRUITLESS} processes ended before {self._ids[at]} began: {why or how}"
                )
        # In front: what comes later is shorter.
        self._left.extendleft(reversed(process.handed))

    def _dismiss(self) -> None:
        """There is nothing left to run: let all end their guests, and tell what they saw last."""
        self._dismissed = True
        for process in self._processes:
            with suppress(OSError):
                process.end.send(None)
        limit = time.monotonic() + _LEAVING_S
        while self._processes and time.monotonic() < limit:
            self._listen(limit)
        self._end_all()

    @contextmanager
    def _ending_all(self) -> Iterator[None]:
        """Whatever ends us, no process is left."""
        try:
            yield
        except BaseException:
            self._end_all()
            raise

    def _end_all(self) -> None:
        """Ask all processes to end, which ends their guests, and see to it.  Idempotent."""
        ending, self._processes = self._processes, []
        for process in ending:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
        limit = time.monotonic() + _ASKED_S
        for process in ending:
            process.end.close()
            _end_of(process.pid, limit - time.monotonic())
        self._ahead.end_all()


def _name(number: int) -> str:
    """What a process is called, and the directory of its guest."""
    return f"gw{number}"


def _end_of(pid: int, seconds: float) -> str:
    """How a child ended; it is killed when it does not within some seconds."""
    watched = os.pidfd_open(pid)
    try:
        if not select.select([watched], [], [], max(0.0, seconds))[0]:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(watched)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
