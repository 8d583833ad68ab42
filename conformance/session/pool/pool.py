"""Distribute cases over worker processes with a guest each, since pytest runs in one thread.

The workers are forked when the cases are collected.  Cases are assigned one at a time, in order, so
that all workers finish together.  A worker that dies is replaced.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import NoReturn

import pytest
from msgspec import Struct, field

from conformance.cases.case import Isolation
from conformance.session.controller.controller import Controller
from conformance.session.ordering import RENEWAL_S
from conformance.session.pool.prelaunch import Prelaunch
from conformance.session.pool.worker_process import (
    CaseDone,
    ForwardedReport,
    ReportForwarder,
    WorkerFailed,
    WorkerReady,
    end,
    reap,
    serve,
    start,
)
from conformance.session.selection import case_id, case_of
from conformance.session.worker.case_hooks import CaseHooks
from vm.qemu.accelerator import TCG

# The name this plugin is registered by.
NAME = "uevt-spread"
# Seconds without a message after which a worker is killed: more than a case, its second run and
# their boots take on the slowest host.
_SILENT_S = 1800.0
# Seconds, with KVM, for final probes and the end of the guests; for a worker to end after SIGTERM.
_SHUTDOWN_S = 60.0
_TERM_S = 5.0
# Workers in a row that may end without a finished case.
_MAX_EARLY_EXITS = 3
_CLEAN_EXIT = "exit code 0"


class PoolFailed(Exception):
    """No worker lives long enough to run a case."""


class _WorkerProcess(Struct, eq=False):
    """One worker, as the controlling process knows it.

    ``ready`` means that it accepts cases.  It runs the first of those ``assigned``.  ``last_heard``
    is the time of its last message on the monotonic clock.
    """

    name: str
    pid: int
    connection: Connection
    ready: bool = False
    assigned: deque[int] = field(default_factory=deque)
    last_heard: float = field(default_factory=time.monotonic)


class WorkerPool:
    """Plugin that runs the cases of a session in ``number`` workers.

    With ``as_needed`` that is the limit: short cases get fewer workers.  ``prepare`` turns a forked
    process into the worker of a name.  ``prelaunch`` boots guests, and ``meanwhile`` prepares what
    all workers need, while cases are collected.
    """

    def __init__(
        self,
        config: pytest.Config,
        controller: Controller,
        number: int,
        prepare: Callable[[str], CaseHooks],
        prelaunch: Prelaunch,
        meanwhile: Callable[[], None],
        *,
        as_needed: bool = False,
    ) -> None:
        self._config = config
        self._controller = controller
        self._prelaunch = prelaunch
        self._meanwhile = threading.Thread(target=meanwhile)
        self._number = number
        self._as_needed = as_needed
        self._prepare = prepare
        self._processes: list[_WorkerProcess] = []
        self._started = 0
        # Node ids of the cases; the indexes of unassigned ones, and of all that have not ended.
        self._ids: tuple[str, ...] = ()
        self._seconds: list[float] = []
        self._queue: deque[int] = deque()
        self._unfinished: set[int] = set()
        self._early_exits = 0
        # How often a worker ended before a case that was assigned to it began.
        self._early_deaths: Counter[int] = Counter()
        self._dismissing = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Launch guests and preparations while cases are collected."""
        # -k and --only may select a single case.
        option = self._config.option
        for number in range(1 if option.keyword or option.only else self._number):
            self._prelaunch.launch(worker_name(number))
        self._meanwhile.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all cases.

        Raises PoolFailed, and what pytest's own loop raises to stop.
        """
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        self._ids = tuple(item.nodeid for item in session.items)
        self._seconds = [*map(self._duration, session.items)]
        self._queue.extend(range(len(self._ids)))
        self._unfinished.update(self._queue)
        # No other thread may run during a fork.
        self._meanwhile.join()
        try:
            for number in range(self._useful(), self._number):
                self._prelaunch.end(worker_name(number))
            while self._unfinished:
                # A worker without cases may have waited for those that another left.
                for process in self._processes:
                    self._assign(process)
                while self._queue and len(self._processes) < self._useful():
                    self._start(session)
                self._wait_for_messages()
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)
            self._dismiss()
        finally:
            self._end_all()
        return True

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
        """Report a failed pool in one line, without a traceback."""
        if not isinstance(excinfo.value, PoolFailed):
            return False
        sys.stderr.write(f"uevt: {excinfo.value}\n")
        return True

    def pytest_unconfigure(self) -> None:
        """End the guests of workers that were never forked."""
        self._prelaunch.end_all()

    def _duration(self, item: pytest.Item) -> float:
        """Seconds that a case takes in this run, as far as they are known."""
        case, option = case_of(item), self._config.option
        name = item.nodeid if case is None else case_id(case, item)
        seconds = self._controller.history.duration(name)
        ends = case is not None and case.isolation is Isolation.FATAL
        if ends or option.isolation == "case":
            seconds += self._renewal
        return seconds * (option.repeat or 1)

    def _useful(self) -> int:
        """How many workers shorten what is left of the run."""
        number = min(self._number, len(self._unfinished))
        if not self._as_needed or len(self._processes) == self._number:
            return number
        seconds = sum(self._seconds[index] for index in self._unfinished)
        # Durations are read from a file, and may be infinite.
        return min(number, max(1, int(min(number, seconds / self._renewal))))

    @property
    def _renewal(self) -> float:
        """Seconds that another guest takes to start; the others run cases meanwhile."""
        return RENEWAL_S * self._slowness / TCG.slowness

    @property
    def _slowness(self) -> float:
        """Of guests, against those with KVM."""
        accelerator = self._controller.target.accelerator
        return 1.0 if accelerator is None else accelerator.slowness

    def _start(self, session: pytest.Session) -> None:
        name = worker_name(self._started)
        self._started += 1

        def serve_forever(other: Connection) -> NoReturn:
            serve(
                session,
                ReportForwarder(self._config, name, other),
                other,
                lambda: self._prepare(name),
            )

        pid, connection = start(serve_forever, [process.connection for process in self._processes])
        self._processes.append(_WorkerProcess(name, pid, connection))
        self._prelaunch.hand_over(name)

    def _wait_for_messages(self, limit: float = math.inf) -> None:
        """Wait for messages until ``limit`` and handle them."""
        connections = {process.connection: process for process in self._processes}
        silent = min(process.last_heard for process in self._processes) + _SILENT_S
        for connection in wait(list(connections), max(0.0, min(limit, silent) - time.monotonic())):
            assert isinstance(connection, Connection)
            self._receive(connections[connection])
        for process in list(self._processes):
            if time.monotonic() - process.last_heard > _SILENT_S:
                os.kill(process.pid, signal.SIGKILL)
                self._handle_exit(process, f"it sent no message for {_SILENT_S:g} s")

    def _receive(self, process: _WorkerProcess) -> None:
        process.last_heard = time.monotonic()
        try:
            message = process.connection.recv()
        except (EOFError, OSError):
            self._handle_exit(process)
            return
        match message:
            case ForwardedReport(plain):
                from_plain = self._config.hook.pytest_report_from_serializable
                report = from_plain(config=self._config, data=plain)
                self._config.hook.pytest_runtest_logreport(report=report)
            case WorkerReady():
                process.ready = True
            case CaseDone():
                self._early_exits = 0
                self._unfinished.discard(process.assigned.popleft())
            case WorkerFailed(text):
                self._handle_exit(process, text)

    def _assign(self, process: _WorkerProcess) -> None:
        """Assign one case to a ready worker, or two while there are many."""
        plenty = len(self._queue) > 2 * self._number
        with suppress(OSError):
            while process.ready and self._queue and len(process.assigned) < (2 if plenty else 1):
                process.assigned.append(self._queue.popleft())
                process.connection.send(process.assigned[-1])

    def _handle_exit(self, process: _WorkerProcess, why: str = "") -> None:
        """Handle the end of a worker.  Its case runs again, a limited number of times."""
        self._processes.remove(process)
        process.connection.close()
        how = reap(process.pid, _TERM_S)
        self._prelaunch.end(process.name)
        if self._dismissing:
            if how != _CLEAN_EXIT:
                self._controller.final_checks_lost(process.name, why or how)
            return
        if self._config.pluginmanager.is_blocked("terminalreporter"):
            sys.stderr.write(f"uevt: process {process.name} ended: {why or how}\n")
        if not process.assigned:
            self._early_exits += 1
            if self._early_exits == _MAX_EARLY_EXITS:
                raise PoolFailed(f"{_MAX_EARLY_EXITS} processes in a row ended early: {why or how}")
            return
        at = process.assigned[0]
        if not self._controller.process_died(self._ids[at]):
            self._unfinished.discard(process.assigned.popleft())
        else:
            self._early_deaths[at] += 1
            if self._early_deaths[at] == _MAX_EARLY_EXITS:
                # Deaths during a case have a lower limit, see process_died.
                raise PoolFailed(
                    f"{_MAX_EARLY_EXITS} processes ended before {self._ids[at]} began: {why or how}"
                )
        # At the front: later cases are shorter.
        self._queue.extendleft(reversed(process.assigned))

    def _dismiss(self) -> None:
        """All cases have ended: let the workers run their final probes and end their guests."""
        self._dismissing = True
        for process in self._processes:
            with suppress(OSError):
                process.connection.send(None)
        seconds = _SHUTDOWN_S * self._slowness
        limit = time.monotonic() + seconds
        while self._processes and time.monotonic() < limit:
            self._wait_for_messages(limit)
        for process in self._processes:
            self._controller.final_checks_lost(process.name, f"no end in {seconds:.0f} s")

    def _end_all(self) -> None:
        """Terminate the workers that are left, which end their guests."""
        ending, self._processes = self._processes, []
        for process in ending:
            process.connection.close()
        end([process.pid for process in ending], _TERM_S)
        self._prelaunch.end_all()


def worker_name(number: int) -> str:
    """The name of a worker, and of the directory of its guest."""
    return f"gw{number}"
