"""A forked worker process: run the assigned cases and forward their reports."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
from msgspec import Struct

from conformance.session.worker.case_hooks import CaseHooks
from host.die_with_parent import tie

# The name the forwarding plugin is registered by.
NAME = "uevt-forked"
# Plugins of pytest that own the terminal, which belongs to the controlling process.
_OUTPUT_PLUGINS = ("terminalreporter", "capturemanager")


class WorkerReady(Struct, frozen=True):
    """The guest boots, and the worker accepts cases."""


class ForwardedReport(Struct, frozen=True):
    """A report of pytest, serialized."""

    report: dict[str, Any]


class CaseDone(Struct, frozen=True):
    """A case ended and was reported."""


class WorkerFailed(Struct, frozen=True):
    """An unexpected exception, which ends the worker."""

    text: str


class ReportForwarder:
    """Plugin that forwards reports to the controlling process."""

    def __init__(self, config: pytest.Config, name: str, other: Connection) -> None:
        self.name = name
        self._config = config
        self._other = other

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Forward a report."""
        to_plain = self._config.hook.pytest_report_to_serializable
        self._other.send(ForwardedReport(to_plain(config=self._config, report=report)))


def serve(
    session: pytest.Session,
    forwarder: ReportForwarder,
    other: Connection,
    prepare: Callable[[], CaseHooks],
) -> NoReturn:
    """Run the cases that are assigned to a forked process.

    ``prepare`` closes what belongs to the controlling process and registers the case hooks.
    """

    def work() -> None:
        plugins = session.config.pluginmanager
        _release_output(session.config)
        for name in _OUTPUT_PLUGINS:
            if (plugin := plugins.get_plugin(name)) is not None:
                plugins.unregister(plugin)
        hooks = prepare()
        plugins.register(forwarder, NAME)
        _run(session, other, hooks)

    run_to_end(
        f"uevt {forwarder.name}",
        work,
        lambda _: other.send(WorkerFailed(traceback.format_exc())),
        lambda: session.config.hook.pytest_unconfigure(config=session.config),
    )


def run_to_end(
    name: str,
    work: Callable[[], None],
    failed: Callable[[BaseException], None],
    finish: Callable[[], object] = lambda: None,
) -> NoReturn:
    """Run a forked process to its end.

    ``failed`` is given an unexpected exception; ``finish`` is called in any case.
    """
    code = 1
    try:
        # For ps and top.
        Path("/proc/self/comm").write_text(name)
        # A terminal sends SIGINT to all processes; the controlling one decides, and sends SIGTERM.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        work()
        code = 0
    except (KeyboardInterrupt, BrokenPipeError, EOFError):
        # SIGTERM, or the controlling process is gone.
        pass
    except BaseException as error:
        with suppress(OSError):
            failed(error)
    finally:
        # It ends already: a signal would only cut `finish` short, one that has come is handled now.
        with suppress(KeyboardInterrupt):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        with suppress(BaseException):
            finish()
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        # Skip the exit handlers of the controlling process.
        os._exit(code)


def _release_output(config: pytest.Config) -> None:
    """Stop pytest from capturing the output of this process."""
    capturing: Any = config.pluginmanager.get_plugin("capturemanager")
    if capturing is not None:
        capturing.suspend_global_capture(in_=True)


def _run(session: pytest.Session, other: Connection, hooks: CaseHooks) -> None:
    hooks.launch()
    hooks.begin()
    other.send(WorkerReady())
    # The next item is unknown; the common collector need not be torn down in between.
    common: Any = _common_collector(session.items)
    while (at := other.recv()) is not None:
        item = session.items[at]
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=common)
        other.send(CaseDone())
    hooks.finish(session)
    session._setupstate.teardown_exact(None)


def _common_collector(items: Sequence[pytest.Item]) -> pytest.Collector | None:
    """The innermost collector of all items; None without items."""
    if not items:
        return None
    chains = [item.listchain()[:-1] for item in items]
    levels = zip(*chains, strict=False)
    common = list(takewhile(lambda level: all(node is level[0] for node in level), levels))
    return cast("pytest.Collector", common[-1][0])


def start(
    serve_forever: Callable[[Connection], NoReturn], other_ends: Sequence[Connection]
) -> tuple[int, Connection]:
    """Fork a process that dies with this one; its pid and our end of the pipe.

    The child closes ``other_ends``, our ends of the pipes to others.  Raises OSError.
    """
    ours, theirs = Pipe()
    me = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        try:
            tie(me)
            for end in (ours, *other_ends):
                end.close()
            serve_forever(theirs)
        except BaseException:
            traceback.print_exc()
        finally:
            # A signal at any moment must not let it return to the callers of its parent.
            os._exit(1)
    theirs.close()
    return pid, ours


def end(pids: Sequence[int], seconds: float) -> None:
    """Terminate processes, and kill those that do not end in time."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    limit = time.monotonic() + seconds
    for pid in pids:
        reap(pid, limit - time.monotonic())


def reap(pid: int, seconds: float) -> str:
    """Wait some seconds for a child, kill it otherwise; how it ended."""
    watched = os.pidfd_open(pid)
    try:
        if not select.select([watched], [], [], max(0.0, seconds))[0]:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(watched)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
