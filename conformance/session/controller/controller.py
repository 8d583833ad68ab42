"""The controlling process: record results and end with the verdict."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import pytest

from conformance.report.export.ktap_stream import write_skipped
from conformance.results.case_result import CaseResult
from conformance.results.contradiction import Contradiction
from conformance.results.directory import link_latest, relative
from conformance.results.errors import ReportError
from conformance.results.exit_codes import Ending, ExitStyle, ending_of, exit_code
from conformance.results.json_codec import decode
from conformance.results.judging import settle
from conformance.results.outcome import Blame, Level, Outcome
from conformance.results.replay import INTERRUPTED, Running
from conformance.results.run import Functions, RunRecord
from conformance.results.shard import Shard
from conformance.runner.case_location import described
from conformance.session.controller.outputs import outputs
from conformance.session.controller.record_files import write_page
from conformance.session.controller.recorder import Recorder
from conformance.session.controller.resume import (
    MOST_DEATHS,
    abandoned_cases,
    without_verdict,
    worker_died,
)
from conformance.session.controller.run_directory import results_root
from conformance.session.ending import nothing_selected, observe, refuse
from conformance.session.ordering import CaseHistory, Durations
from conformance.session.selection import frozen_list
from conformance.session.target.gcov import NoCoverage
from conformance.session.target.target import Target
from conformance.session.time_limits import Lost, RunLimit
from host import interruption
from host.text import one_line
from kernels.store.store import default_root

# The attribute of pytest reports that carries our data between processes, see CaseHooks.
DATA = "uevt"


class Controller:
    """Plugin that records one run."""

    def __init__(
        self,
        config: pytest.Config,
        target: Target,
        directory: Path,
        ktap: TextIO | None,
        command_words: tuple[str, ...],
    ) -> None:
        self.target = target
        self.directory = directory
        self._config = config
        self._recorder = Recorder(target, directory, command_words, Level(config.option.fail_on))
        before = self._recorder.before
        # The running case by node id, and how often the worker of a case died in this session.
        self._running: dict[str, Running] = {}
        self._deaths: Counter[Running] = Counter()
        # Node ids of the cases with a result.
        self._reported: set[str] = set()
        for running, result in abandoned_cases(before):
            self._recorder.journal.running(*running)
            self._recorder.case(result)
        self._durations = Durations(default_root(), target.id)
        suspects = [running.id for running in before.deaths]
        seconds = self._durations.read()
        self.history = CaseHistory(seconds, self._recorder.ended, suspects)
        self.limit = RunLimit.of(config.option.deadline)
        self.lost = Lost()
        self._selected = 0
        # Selected cases that this session still has to run.
        self._remaining = 0
        # Their number as selected, and case files that were not collected.
        self._selected_now: int | None = None
        self._functions = Functions(0, 0)
        self._shards: tuple[Shard, ...] = ()
        self._missing_files: tuple[str, ...] = ()
        #: Files of cases that cannot be imported.
        self.unloadable: list[str] = []
        # Results that are not of selected cases.
        self._other = 0
        self._abandoned = False
        self._interrupted = False
        self._record: RunRecord | None = None
        self._ktap = ktap
        self._outputs = outputs(config, self._recorder.head, relative(directory), ktap)
        # SIGTERM ends the run like Ctrl-C: with a report of the results so far.
        interruption.by_sigterm()

    def close_after_fork(self) -> None:
        """Close the parent's journal and KTAP in a forked worker."""
        self._recorder.journal.close()
        if self._ktap is not None:
            self._ktap.close()

    @property
    def complete(self) -> bool:
        """Whether all cases of a resumed run have a result."""
        return self._recorder.before.selected == len(self.history.ended)

    def conclude(self) -> int:
        """Write the reports of a complete run again; the exit code.  Raises OSError."""
        where = relative(self.directory)
        sys.stderr.write(f"uevt: {where} is complete; its reports are written again\n")
        self._begin(0)
        code = self._finish()
        for output in self._outputs:
            output.end(self._record)
        return code

    def abandon(self, skipped: str = "") -> None:
        """Remove every trace of a run without cases; ``skipped`` says why KTAP skips it."""
        self._abandoned = True
        if skipped and self._ktap is not None:
            write_skipped(self._ktap, skipped)
        self._recorder.discard()

    def note_selection(
        self, selected: int, lost: Sequence[str], functions: Functions, shard: Shard | None
    ) -> None:
        """Record how many cases were selected of which functions, and the files not collected."""
        self._selected_now, self._missing_files = selected, tuple(lost)
        self._functions = functions
        self._shards = () if shard is None else (shard,)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Begin the run; pytest calls this after a failed collection, too."""
        if self._selected_now is not None:
            self._begin(len(session.items))

    def _begin(self, left: int) -> None:
        """Begin a run in which so many cases remain."""
        if self._abandoned or (not left and not self.history.ended):
            # pytest_sessionfinish reports a run without cases.
            return
        try:
            self._selected = self._recorder.plan(left, self._functions, self._shards)
        except ReportError as error:
            refuse(self._config, error.with_hint)
        self._remaining = left
        before, selected = self._recorder.results_so_far, frozenset(self.history.ended)
        for output in self._outputs:
            output.begin(self._selected)
            for result in before:
                (output.case if result.id in selected else output.remark)(result)
        self._selected += len(before) - len(selected)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the names of files that cannot be loaded."""
        if not report.failed:
            return
        self.unloadable.append(Path(report.nodeid).name)

    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[object]
    ) -> None:
        """Print why a file of cases cannot be loaded, unless pytest prints it."""
        if isinstance(node, pytest.Item) or call.excinfo is None:
            return
        if self._config.pluginmanager.is_blocked("terminalreporter"):
            error = call.excinfo.value
            why = one_line(described(error.__cause__ or error, str(node.path)))
            sys.stderr.write(f"uevt: cannot load {relative(node.path)}: {why}\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record what a worker reports."""
        data: Mapping[str, Any] = getattr(report, DATA, {})
        if "begun" in data:
            self._running[report.nodeid] = Running(*data["begun"])
            self._recorder.journal.running(*data["begun"])
        if "result" in data:
            self._record_result(report.nodeid, CaseResult.from_json(data["result"]), data["first"])
        if "others" in data:
            self._record_other_results(data)

    def _record_result(self, nodeid: str, result: CaseResult, first: object) -> None:
        running = self._running.pop(nodeid)
        self._reported.add(nodeid)
        if self._deaths.get(running):
            result = settle(worker_died(running), result)
        if first is not None:
            self._recorder.journal.attempt(CaseResult.from_json(first))
        if result.not_built:
            self._recorder.not_built(self.target.without_user_events)
        self._record_case(result)

    def _record_other_results(self, data: Mapping[str, Any]) -> None:
        for plain in data["others"]:
            # Counted once for all guests, though it was not selected.
            self._record_other(self._recorder.located(CaseResult.from_json(plain)))
        for found in data["contradictions"]:
            self._recorder.contradiction(decode(Contradiction, found, "contradictions"))
        self._recorder.guest_started(data["start"])

    def _record_other(self, result: CaseResult) -> None:
        self._other += self._recorder.other_result(result)
        for output in self._outputs:
            output.remark(result)

    def _record_case(self, result: CaseResult) -> None:
        self._recorder.case(result)
        for output in self._outputs:
            output.case(result)

    def process_died(self, nodeid: str) -> bool:
        """Record that the worker of a case died; whether to run the case again."""
        running = self._running.pop(nodeid, None)
        if running is None:
            # The case did not begin, or its result arrived.
            return nodeid not in self._reported
        self._deaths[running] += 1
        deaths = self._deaths[running] + self._recorder.before.deaths[running]
        if deaths < MOST_DEATHS:
            self._recorder.journal.attempt(worker_died(running))
            return True
        self._record_case(without_verdict(running, deaths))
        return False

    def final_checks_lost(self, worker: str, why: str) -> None:
        """Record that a worker ended before its final probes, and before it unloaded modules."""
        reason = f"the process of guest {worker} ended before its final checks: {why}"
        name = f"guest.{worker}"
        self._record_other(CaseResult(name, "guest", "full", Outcome.ERROR, Blame.HOST, reason))

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
        """Report an error of the disk in one line, without a traceback."""
        if not isinstance(excinfo.value, OSError):
            return False
        self._report_disk_error(excinfo.value)
        return True

    def _report_disk_error(self, error: OSError) -> None:
        hint = f"fix that, then resume: uevt run --resume {relative(self.directory)}"
        sys.stderr.write(f"uevt: {self.directory}: {error.strerror or error}; {hint}\n")

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note a Ctrl-C, but not its subclasses, by which a session ends itself."""
        self._interrupted = type(excinfo.value) is KeyboardInterrupt

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the results and set the exit status."""
        if self._abandoned:
            return
        style = ExitStyle(self._config.option.exit_style)
        if exitstatus == pytest.ExitCode.INTERNAL_ERROR:
            session.exitstatus = exit_code(Ending.HOST, style)
            return
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            self.abandon()
            why = nothing_selected(self._config, self.target.profile.name)
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
        away = self._note_on_missing()
        note = INTERRUPTED if self._interrupted else away
        record = self._recorder.finish(self._selected, note, frozen_list(self._config))
        self._durations.remember({case.id: case.duration_s for case in record.cases})
        option = self._config.option
        in_store = option.out is None and self.directory.parents[1] == results_root(self._config)
        # A shard is no result of its kernel.
        if in_store and option.shard is None:
            link_latest(self.directory)
        self._record = record
        code = exit_code(
            Ending.INTERRUPTED
            if self._interrupted
            else ending_of(record.verdict, all_skipped=record.all_skipped),
            ExitStyle(self._config.option.exit_style),
            origin=self.target.origin,
            require=self._config.option.require,
        )
        return observe(self._config, code)

    def _note_on_missing(self) -> str:
        """Why selected cases did not run, "" if all did; they count as selected."""
        away = (self._selected_now or 0) - self._remaining
        why = []
        if away > 0:
            why.append(f"{away} cases were taken away by a plugin or an option of pytest")
        if self._missing_files:
            cause = (
                "cannot load"
                if set(self._missing_files) <= set(self.unloadable)
                else "not collected:"
            )
            why.append(f"{cause} {', '.join(self._missing_files)}")
        self._selected += max(0, away) + len(self._missing_files) + self._other
        return "; ".join(why)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Print the summary after everything that pytest prints; the verdict is last."""
        if self._abandoned:
            self._recorder.discard()
        if self._record is not None:
            # The guests ended with their workers.
            self._print_coverage()
            self._write_page(self._record)
            self._recorder.join_consoles()
        for output in self._outputs:
            output.end(self._record)
        # Counters of gcov are lost with their guests.
        if self._interrupted and self._record is not None and not self.target.counted:
            sys.stderr.write(f"uevt: to go on: uevt run --resume {relative(self.directory)}\n")

    def _write_page(self, record: RunRecord) -> None:
        try:
            write_page(record, self.directory)
        except ImportError as error:
            # An installed suite has no packages for it.
            makes = "copy the results, and run uevt report DIR --html FILE elsewhere"
            sys.stderr.write(f"uevt: no report.html without {error.name}: {makes}\n")
        except OSError as error:
            # results.json has all of its content.
            sys.stderr.write(f"uevt: no report.html: {error}\n")

    def _print_coverage(self) -> None:
        if not self.target.counted:
            return
        try:
            for found in self._recorder.covered(self.target.counted):
                sys.stderr.write(f"uevt: coverage of {found}\n")
        except (NoCoverage, OSError) as error:
            sys.stderr.write(f"uevt: no coverage: {error}\n")
