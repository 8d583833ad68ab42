"""The process that controls a run: it records results and ends with the verdict."""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest

from conformance.outcome import CaseResult, Contradiction, decode
from conformance.plugin.recorder import Recorder
from conformance.plugin.target import Target
from conformance.report.exits import Ending, ExitStyle, ending_of, exit_code
from conformance.report.record import RunRecord
from conformance.report.rundir import claim, default_directory, link_latest
from conformance.report.terminal import render_summary
from conformance.report.text import use_colour

# The name this plugin is registered by.
NAME = "uevt-controller"
# Names under which a worker of xdist is told its target, and reports carry results.
INPUT = "uevt"
RESULT = "uevt_result"
FIRST = "uevt_first"
BESIDE = "uevt_beside"
CONTRADICTIONS = "uevt_contradictions"


def refuse(config: pytest.Config, why: str, ending: Ending = Ending.USAGE) -> NoReturn:
    """End the session before anything runs, with one line and the contracted exit code."""
    controller = config.pluginmanager.get_plugin(NAME)
    if isinstance(controller, Controller):
        controller.abandon()
    pytest.exit(f"uevt: {why}", exit_code(ending, ExitStyle(config.option.exit_style)))


def nothing_selected(config: pytest.Config, target: Target) -> str:
    """Why a run has no case, and the mend."""
    option = config.option
    return (
        f"nothing selected: no case fits -k {option.keyword!r}, tier {option.tier} and profile "
        f"{target.profile.name}; -k matches parts of case ids"
    )


def results_directory(config: pytest.Config, target: Target) -> Path:
    """The directory of this run, ready to be written into.

    Raises DirectoryRefused for one that must not be used, OSError for a full disk.
    """
    if config.option.out is not None:
        directory = Path(config.option.out).absolute()
        claim(directory, force=config.option.force)
        return directory
    root = config.rootpath / "results"
    directory = default_directory(root, target.id, datetime.now(UTC))
    # Two runs may start within one second.
    number = 1
    while directory.exists():
        number += 1
        directory = directory.with_name(f"{directory.name.partition('-')[0]}-{number}")
    claim(directory)
    return directory


class Controller:
    """Records one run."""

    def __init__(self, config: pytest.Config, target: Target, directory: Path) -> None:
        self.target = target
        self.directory = directory
        self._config = config
        self._recorder = Recorder(target, directory)
        self._selected = 0
        self._abandoned = False
        self._interrupted = False
        self._record: RunRecord | None = None
        # Being told to end is like Ctrl-C: the report of what was done so far is written.
        signal.signal(signal.SIGTERM, signal.default_int_handler)

    def abandon(self) -> None:
        """There is nothing to run: leave no trace of this run."""
        self._abandoned = True
        self._recorder.discard()

    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist what was found out here."""
        told = {"target": self.target.to_json(), "directory": str(self.directory)}
        node.workerinput[INPUT] = json.dumps(told)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """How many cases there will be (without xdist)."""
        self._selected = len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """How many cases there will be (with xdist)."""
        self._selected = len(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result of a case."""
        plain = getattr(report, RESULT, None)
        if plain is None:
            return
        result = CaseResult.from_json(plain)
        first = getattr(report, FIRST)
        if first is not None:
            self._recorder.attempt(CaseResult.from_json(first))
        if result.not_built:
            self._recorder.not_built(f"{self.target.id} was built without user_events")
        for beside in getattr(report, BESIDE):
            # It was not selected, and counts all the same: once, for all guests.
            self._selected += self._recorder.beside(CaseResult.from_json(beside))
        for found in getattr(report, CONTRADICTIONS):
            self._recorder.contradicted(decode(Contradiction, found, CONTRADICTIONS))
        self._recorder.case(result)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Ctrl-C, or the session ended itself before anything ran."""
        self._interrupted = isinstance(excinfo.value, KeyboardInterrupt)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the results; the exit status is uevt's."""
        if self._abandoned or exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            return
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            # The processes that collect are others: see Running.
            self.abandon()
            why = nothing_selected(self._config, self.target)
            sys.stderr.write(f"uevt: {why}\n")
            style = ExitStyle(self._config.option.exit_style)
            session.exitstatus = exit_code(Ending.USAGE, style)
            return
        note = "interrupted" if self._interrupted else ""
        self._record = self._recorder.finish(self._selected, note)
        if self._config.option.out is None:
            link_latest(self.directory)
        verdict = ending_of(self._record.verdict)
        ending = Ending.INTERRUPTED if self._interrupted else verdict
        option = self._config.option
        session.exitstatus = exit_code(
            ending, ExitStyle(option.exit_style), origin=self.target.origin, require=option.require
        )

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Say what the run showed, after everything that pytest says; the verdict is last."""
        if self._abandoned:
            self._recorder.discard()
        if self._record is not None:
            # The guests have ended with the processes that ran them.
            self._recorder.join_consoles()
            colour = use_colour(sys.stdout, os.environ)
            sys.stdout.write(
                render_summary(self._record, directory=_shown(self.directory), colour=colour)
            )


def _shown(directory: Path) -> Path:
    """A path as short as it can be said from here."""
    here = Path.cwd()
    return directory.relative_to(here) if directory.is_relative_to(here) else directory
