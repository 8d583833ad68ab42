"""The process that controls a run: it records results and ends with the verdict."""

from __future__ import annotations

import gc
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn, TextIO

import pytest

from conformance.results import journal
from conformance.results.case_result import CaseResult, Contradiction, settle
from conformance.results.directory import claim, default_directory, link_latest, reserved
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, ExitStyle, ending_of, exit_code
from conformance.results.json_codec import decode
from conformance.results.replay import INTERRUPTED, Running
from conformance.results.run import RunRecord
from conformance.session.controller.outputs import views
from conformance.session.controller.recorder import Recorder
from conformance.session.controller.resume import (
    MOST_DEATHS,
    abandoned_cases,
    without_verdict,
    worker_died,
)
from conformance.session.ordering import CaseHistory, Durations
from conformance.session.target.gcov import NoCoverage
from conformance.session.target.target import Target
from conformance.session.time_limits import RunLimit
from kernels.store.store import default_root

# The name this plugin is registered by.
NAME = "uevt-controller"
# Names under which reports carry what was found out.
RESULT = "uevt_result"
FIRST = "uevt_first"
OTHER_RESULTS = "uevt_beside"
CONTRADICTIONS = "uevt_contradictions"
START = "uevt_start"
CASE_STARTED = "uevt_begun"


class ExitCodeObserver:
    """A plugin that is told the exit code of a run that has ended with a result.

    Garbage is collected from when cases begin, of what comes after.
    """

    code: int | None = None

    def pytest_collection_finish(self) -> None:
        """What was imported and collected stays, here and in processes that are forked."""
        gc.freeze()
        gc.enable()


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
    """Why a run has no case, and the hint."""
    option = config.option
    controller = config.pluginmanager.get_plugin(NAME)
    if isinstance(controller, Controller) and controller.unloadable:
        return f"no case left: cannot load {', '.join(controller.unloadable)}"
    return (
        f"nothing selected: no case fits -k {option.keyword!r}, tier {option.tier} and profile "
        f"{target.profile.name}; -k matches parts of case ids"
    )


def results_directory(config: pytest.Config, target: Target) -> Path:
    """The directory of this run, ready to be written into.

    Raises DirectoryRefused for one that must not be used, OSError for a full disk.
    """
    if config.option.resume is not None:
        directory = Path(config.option.resume).absolute()
        claim(directory, resume=(directory / journal.NAME).exists())
    elif config.option.out is not None:
        directory = Path(config.option.out).absolute()
        claim(directory, force=config.option.force)
    else:
        directory = reserved(default_directory(_results(config), target.id, datetime.now(UTC)))
        claim(directory)
    return directory


def _results(config: pytest.Config) -> Path:
    """Where runs go that nobody names a directory for."""
    return config.rootpath / "results"


class Controller:
    """Records one run."""

    def __init__(
        self,
        config: pytest.Config,
        target: Target,
        directory: Path,
        ktap: TextIO | None,
        asked: tuple[str, ...],
    ) -> None:
        self.target = target
        self.directory = directory
        self._config = config
        self._recorder = Recorder(target, directory, asked)
        before = self._recorder.before
        # By the ids of pytest; and how often their process died in this part of the run.
        self._running: dict[str, Running] = {}
        self._deaths: Counter[Running] = Counter()
        # What pytest calls the cases that have a result.
        self._told: set[str] = set()
        for running, result in abandoned_cases(before):
            self._recorder.running(*running)
            self._recorder.case(result)
        self._durations = Durations(default_root(), target.id)
        suspects = [running.id for running in before.deaths]
        seconds = self._durations.read()
        self.history = CaseHistory(seconds, self._recorder.ended, suspects)
        self.limit = RunLimit.of(config.option.deadline)
        self._selected = 0
        # Of them, those that are to be run here and now.
        self._left = 0
        # How many were selected for that, once that is known, and the files that were not found.
        self._expected: int | None = None
        self._lost: tuple[str, ...] = ()
        #: Files of cases that cannot be imported.
        self.unloadable: list[str] = []
        # What was not selected and has a result all the same.
        self._beside = 0
        self._abandoned = False
        self._interrupted = False
        self._record: RunRecord | None = None
        self._ktap = ktap
        self._views = views(config, self._recorder.head, _shown(directory), ktap)
        # Being told to end is like Ctrl-C: the report of what was done so far is written.
        signal.signal(signal.SIGTERM, signal.default_int_handler)

    def close_after_fork(self) -> None:
        """This process is forked: what was opened to record a run is the other one's."""
        self._recorder.close_after_fork()
        if self._ktap is not None:
            self._ktap.close()

    @property
    def complete(self) -> bool:
        """Whether all cases had ended before: there is nothing left but to say so."""
        return self._recorder.before.selected == len(self.history.ended)

    def conclude(self) -> int:
        """Write and tell what the run had come to; the exit code.  Raises OSError."""
        how = "had ended" if self._recorder.over else "lacked no case"
        sys.stderr.write(f"uevt: {_shown(self.directory)} {how}; its reports are written again\n")
        self._begin(0)
        code = self._finish()
        for view in self._views:
            view.end(self._record)
        return code

    def abandon(self) -> None:
        """There is nothing to run: leave no trace of this run."""
        self._abandoned = True
        self._recorder.discard()

    def expect(self, selected: int, lost: Sequence[str]) -> None:
        """So many cases were selected, and these files of cases were not found."""
        self._expected, self._lost = selected, tuple(lost)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """How many cases there will be; pytest calls this where collecting was broken off, too."""
        if self._expected is not None:
            self._begin(len(session.items))

    def _begin(self, left: int) -> None:
        """So many cases are to be run here and now."""
        if self._abandoned or (not left and not self.history.ended):
            # Without a case there is no run: see pytest_sessionfinish.
            return
        try:
            self._selected = self._recorder.plan(left)
        except ReportError as error:
            refuse(self._config, f"{error}; {error.hint}")
        self._left = left
        before, selected = self._recorder.earlier, frozenset(self.history.ended)
        for view in self._views:
            view.begin(self._selected)
            for result in before:
                (view.case if result.id in selected else view.remark)(result)
        self._selected += len(before) - len(selected)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Print why a file of cases cannot be loaded, unless pytest prints it."""
        if not report.failed:
            return
        self.unloadable.append(Path(report.nodeid).name)
        if self._config.pluginmanager.is_blocked("terminalreporter"):
            lines = report.longreprtext.splitlines()
            # pytest guesses at names of modules; the traceback has the cause.
            told = "\n".join(line for line in lines if not line.startswith("Hint: make sure"))
            sys.stderr.write(f"uevt: cannot load {report.nodeid}: {told}\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record what a process that runs cases tells."""
        begun = getattr(report, CASE_STARTED, None)
        if begun is not None:
            self._running[report.nodeid] = Running(*begun)
            self._recorder.running(*begun)
        plain = getattr(report, RESULT, None)
        if plain is not None:
            self._judged(CaseResult.from_json(plain), report)
        if hasattr(report, OTHER_RESULTS):
            self._record_other_results(report)

    def _judged(self, result: CaseResult, report: pytest.TestReport) -> None:
        running = self._running.pop(report.nodeid)
        self._told.add(report.nodeid)
        if self._deaths.get(running):
            result = settle(worker_died(running), result)
        first = getattr(report, FIRST)
        if first is not None:
            self._recorder.attempt(CaseResult.from_json(first))
        if result.not_built:
            self._recorder.not_built(self.target.without_user_events)
        self._ended(result)

    def _record_other_results(self, report: pytest.TestReport) -> None:
        for beside in getattr(report, OTHER_RESULTS):
            # It was not selected, and counts all the same: once, for all guests.
            told = CaseResult.from_json(beside)
            self._beside += self._recorder.beside(told)
            for view in self._views:
                view.remark(told)
        for found in getattr(report, CONTRADICTIONS):
            self._recorder.contradicted(decode(Contradiction, found, CONTRADICTIONS))
        self._recorder.guest_started(getattr(report, START))

    def _ended(self, result: CaseResult) -> None:
        self._recorder.case(result)
        for view in self._views:
            view.case(result)

    def died_in(self, nodeid: str) -> bool:
        """The process died that was handed this case; whether the case is to be run once more."""
        running = self._running.pop(nodeid, None)
        if running is None:
            # It had not begun, or its result was the last word.
            return nodeid not in self._told
        self._deaths[running] += 1
        deaths = self._deaths[running] + self._recorder.before.deaths[running]
        if deaths < MOST_DEATHS:
            self._recorder.attempt(worker_died(running))
            return True
        self._ended(without_verdict(running, deaths))
        return False

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
        """A disk that refuses is no error of ours: one line says so."""
        if not isinstance(excinfo.value, OSError):
            return False
        self._report_disk_error(excinfo.value)
        return True

    def _report_disk_error(self, error: OSError) -> None:
        hint = f"fix that, then resume: uevt run --resume {_shown(self.directory)}"
        sys.stderr.write(f"uevt: {self.directory}: {error.strerror or error}; {hint}\n")

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
            self.abandon()
            why = nothing_selected(self._config, self.target)
            sys.stderr.write(f"uevt: {why}\n")
            session.exitstatus = exit_code(Ending.USAGE, style)
            return
        try:
            session.exitstatus = self._finish()
        except OSError as error:
            self._report_disk_error(error)
            session.exitstatus = exit_code(Ending.HOST, style)

    def _finish(self) -> int:
        """Write the results; the exit code.  Raises OSError."""
        away = self._taken_away()
        note = INTERRUPTED if self._interrupted else away
        record = self._recorder.finish(self._selected, note)
        self._durations.remember({case.id: case.duration_s for case in record.cases})
        if self._config.option.out is None and self.directory.parents[1] == _results(self._config):
            link_latest(self.directory)
        self._record = record
        code = exit_code(
            Ending.INTERRUPTED if self._interrupted else ending_of(record.verdict),
            ExitStyle(self._config.option.exit_style),
            origin=self.target.origin,
            require=self._config.option.require,
        )
        for witness in self._config.pluginmanager.get_plugins():
            if isinstance(witness, ExitCodeObserver):
                witness.code = code
        return code

    def _taken_away(self) -> str:
        """Why cases that were to run did not, "" when all did; they count as selected."""
        away = (self._expected or 0) - self._left
        why = []
        if away > 0:
            why.append(f"{away} cases were taken away by a plugin or an option of pytest")
        if self._lost:
            cause = "cannot load" if set(self._lost) <= set(self.unloadable) else "not collected:"
            why.append(f"{cause} {', '.join(self._lost)}")
        self._selected += max(0, away) + len(self._lost) + self._beside
        return "; ".join(why)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Say what the run showed, after everything that pytest says; the verdict is last."""
        if self._abandoned:
            self._recorder.discard()
        if self._record is not None:
            # The guests have ended with the processes that ran them.
            self._tell_coverage()
            self._show(self._record)
            self._recorder.join_consoles()
        for view in self._views:
            view.end(self._record)

    def _show(self, record: RunRecord) -> None:
        try:
            self._recorder.show(record)
        except OSError as error:
            # All that it says is in results.json.
            sys.stderr.write(f"uevt: no report.html: {error}\n")

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
