"""A process that was forked to run cases: it runs those that it is handed."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from conformance.session.worker.case_hooks import CaseHooks
from host.die_with_parent import tie

# The name that the plugin of such a process is registered by.
NAME = "uevt-forked"
# Plugins of pytest that speak to people, or hold its standard output: the other process does.
_SPEAKING = ("terminalreporter", "capturemanager")


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """Its guest comes up, and it can be handed cases."""


@dataclass(frozen=True, slots=True)
class ForwardedReport:
    """A report of a case, or of something else, as the hooks of pytest make it plain."""

    report: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CaseDone:
    """A case has ended, and was told."""


@dataclass(frozen=True, slots=True)
class WorkerFailed:
    """An exception that nobody expected; the process ends with it."""

    text: str


class ReportForwarder:
    """Tells the other process what the hooks of pytest are told here."""

    def __init__(self, config: pytest.Config, name: str, other: Connection) -> None:
        self.name = name
        self._config = config
        self._other = other

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A report of a case, or of something else that was run."""
        to_plain = self._config.hook.pytest_report_to_serializable
        self._other.send(ForwardedReport(to_plain(config=self._config, report=report)))


def serve(
    session: pytest.Session,
    forwarder: ReportForwarder,
    other: Connection,
    prepare: Callable[[], CaseHooks],
) -> NoReturn:
    """Be a forked process from its beginning to its end.

    ``prepare`` takes leave of what is the other process's, and registers who runs cases.
    """
    code = 1
    try:
        # For people who look for it among the processes.
        Path("/proc/self/comm").write_text(f"uevt {forwarder.name}")
        # A terminal sends Ctrl-C to all of us; the other one decides, and asks us to end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        plugins = session.config.pluginmanager
        _release_output(session.config)
        for name in _SPEAKING:
            if (speaker := plugins.get_plugin(name)) is not None:
                plugins.unregister(speaker)
        hooks = prepare()
        plugins.register(forwarder, NAME)
        _run(session, other, hooks)
        code = 0
    except (KeyboardInterrupt, BrokenPipeError, EOFError):
        # We were asked to end, or there is nobody left to ask us.
        pass
    except BaseException:
        with suppress(OSError):
            other.send(WorkerFailed(traceback.format_exc()))
    finally:
        with suppress(BaseException):
            session.config.hook.pytest_unconfigure(config=session.config)
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        # Nothing of the other process's may end twice.
        os._exit(code)


def _release_output(config: pytest.Config) -> None:
    """Write where the other process's own output goes, were pytest to hold that back."""
    capturing: Any = config.pluginmanager.get_plugin("capturemanager")
    if capturing is not None:
        capturing.suspend_global_capture(in_=True)


def _run(session: pytest.Session, other: Connection, hooks: CaseHooks) -> None:
    hooks.launch()
    hooks.begin()
    other.send(WorkerReady())
    # Which item comes next nobody knows, but that what all have in common need not be torn down.
    shared: Any = _ancestor(session.items)
    while (at := other.recv()) is not None:
        item = session.items[at]
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=shared)
        other.send(CaseDone())
    hooks.finish(session)
    session._setupstate.teardown_exact(None)


def _ancestor(items: Sequence[pytest.Item]) -> pytest.Collector | None:
    """The innermost collector that all items are below; None where there are no items."""
    if not items:
        return None
    chains = [item.listchain()[:-1] for item in items]
    levels = zip(*chains, strict=False)
    common = list(takewhile(lambda level: all(node is level[0] for node in level), levels))
    return cast("pytest.Collector", common[-1][0])


def start(
    serve_forever: Callable[[Connection], NoReturn], other_ends: Sequence[Connection]
) -> tuple[int, Connection]:
    """Fork a process that ends with this one: its id, and our end of what leads to it.

    ``strange`` are our ends of others, which it lets go of.  Raises OSError.
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
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        serve_forever(theirs)
    theirs.close()
    return pid, ours
