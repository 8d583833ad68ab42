"""The process that controls a run: it records results and ends with the verdict."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, TextIO

import pytest

from conformance.outcome import CaseResult, Contradiction, decode
from conformance.plugin.coverage import NoCoverage
from conformance.plugin.limits import RunLimit
from conformance.plugin.order import Durations
from conformance.plugin.recorder import Recorder
from conformance.plugin.target import Target
from conformance.plugin.views import views
from conformance.report.exits import Ending, ExitStyle, ending_of, exit_code
from conformance.report.record import RunRecord
from conformance.report.rundir import claim, default_directory, link_latest, unused
from kernels.store import default_root

# The name this plugin is registered by.
NAME = "uevt-controller"
# Names under which a worker of xdist is told its target, and reports carry results.
INPUT = "uevt"
RESULT = "uevt_result"
FIRST = "uevt_first"
BESIDE = "uevt_beside"
CONTRADICTIONS = "uevt_contradictions"
START = "uevt_start"


def refuse(config: pytest.Config, why: str, ending: Ending = Ending.USAGE) -> NoReturn:
    """End a session before its first case, with one line and the contracted exit code."""
    controller = config.pluginmanager.get_plugin(NAME)
    if isinstance(controller, Controller):
        controller.abandon()
    if config.pluginmanager.is_blocked("terminalreporter"):
        # Who else would say it?
        sys.stderr.write(f"uevt: {why}\n")
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
    directory = unused(default_directory(root, target.id, datetime.now(UTC)))
    claim(directory)
    return directory


class Controller:
    """Records one run."""

    def __init__(
        self, config: pytest.Config, target: Target, directory: Path, ktap: TextIO | None
    ) -> None:
        self.target = target
        self.directory = directory
        self._config = config
        self._recorder = Recorder(target, directory)
        self._durations = Durations(default_root(), target.id)
        # What each case took when it last ran on this kernel.
        self.seconds = self._durations.read()
        self.limit = RunLimit.of(config.option.deadline)
        self._selected = 0
        self._abandoned = False
        self._interrupted = False
        self._record: RunRecord | None = None
        self._views = views(config, self._recorder.head, _shown(directory), ktap)
        # Being told to end is like Ctrl-C: the report of what was done so far is written.
        signal.signal(signal.SIGTERM, signal.default_int_handler)

    def abandon(self) -> None:
        """There is nothing to run: leave no trace of this run."""
        self._abandoned = True
        self._recorder.discard()

    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist what was found out here."""
        told = {
            "target": self.target.to_json(),
            "directory": str(self.directory),
            "seconds": self.seconds,
            "limit": None if self.limit is None else asdict(self.limit),
        }
        node.workerinput[INPUT] = json.dumps(told)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """How many cases there will be (without xdist)."""
        self._begin(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """How many cases there will be (with xdist): every process says the same."""
        if not self._selected:
            self._begin(len(ids))

    def _begin(self, selected: int) -> None:
        self._selected = selected
        # Without a case there is no run: see pytest_sessionfinish.
        for view in self._views if selected else ():
            view.begin(selected)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Say what keeps cases from being found where pytest does not."""
        if report.failed and self._config.pluginmanager.is_blocked("terminalreporter"):
            sys.stderr.write(f"uevt: {report.nodeid}: {report.longreprtext}\n")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """Say what ended a process of xdist before its time where pytest does not."""
        if error and self._config.pluginmanager.is_blocked("terminalreporter"):
            sys.stderr.write(f"uevt: process {node.gateway.id} ended: {error}\n")

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
            told = CaseResult.from_json(beside)
            self._selected += self._recorder.beside(told)
            for view in self._views:
                view.remark(told)
        for found in getattr(report, CONTRADICTIONS):
            self._recorder.contradicted(decode(Contradiction, found, CONTRADICTIONS))
        self._recorder.case(result)
        self._recorder.guest_started(getattr(report, START))
        for view in self._views:
            view.case(result)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Ctrl-C; a session that ends itself raises other exceptions, even of this class."""
        self._interrupted = type(excinfo.value) is KeyboardInterrupt

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the results; the exit status is uevt's."""
        if self._abandoned:
            return
        style = ExitStyle(self._config.option.exit_style)
        if exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            session.exitstatus = exit_code(Ending.HOST, style)
            return
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            # The processes that collect are others: see Running.
            self.abandon()
            why = nothing_selected(self._config, self.target)
            sys.stderr.write(f"uevt: {why}\n")
            session.exitstatus = exit_code(Ending.USAGE, style)
            return
        note = "interrupted" if self._interrupted else ""
        try:
            self._record = self._recorder.finish(self._selected, note)
        except OSError as error:
            self._unwritten(error)
            session.exitstatus = exit_code(Ending.HOST, style)
            return
        self._durations.remember({case.id: case.duration_s for case in self._record.cases})
        if self._config.option.out is None:
            link_latest(self.directory)
        verdict = ending_of(self._record.verdict)
        ending = Ending.INTERRUPTED if self._interrupted else verdict
        session.exitstatus = exit_code(
            ending, style, origin=self.target.origin, require=self._config.option.require
        )

    def _unwritten(self, error: OSError) -> None:
        """Say that there are no results, and where what is known of the cases may be."""
        why = f"{_shown(self.directory)}: results could not be written: {error.strerror}"
        mend = "make room there and run it again; journal.jsonl has the cases that found place"
        sys.stderr.write(f"uevt: {why}; {mend}\n")

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Say what the run showed, after everything that pytest says; the verdict is last."""
        if self._abandoned:
            self._recorder.discard()
        if self._record is not None:
            # The guests have ended with the processes that ran them.
            self._tell_coverage()
            self._recorder.join_consoles()
        for view in self._views:
            view.end(self._record)

    def _tell_coverage(self) -> None:
        if not self.target.counted:
            return
        try:
            for found in self._recorder.covered(self.target.counted):
                sys.stderr.write(f"uevt: coverage of {found}\n")
        except (NoCoverage, OSError) as error:
            sys.stderr.write(f"uevt: no coverage: {error}\n")


def _shown(directory: Path) -> Path:
    """A path as short as it can be said from here."""
    here = Path.cwd()
    return directory.relative_to(here) if directory.is_relative_to(here) else directory
