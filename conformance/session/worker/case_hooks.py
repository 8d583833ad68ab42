"""The pytest hooks that run cases in a process with a guest."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from msgspec import to_builtins
from msgspec.structs import replace

from conformance.cases.case import Case
from conformance.report.failure import render_failure
from conformance.results.case_result import CaseResult
from conformance.results.outcome import NOT_OK, Outcome
from conformance.runner.case_location import failing_line, located
from conformance.session.controller.controller import DATA
from conformance.session.selection import CaseSelection, case_id, case_of, tier_of
from conformance.session.worker.worker import Worker
from vm.errors import VmError

_RAISED = pytest.StashKey[BaseException | None]()
_CALLED = pytest.StashKey[bool]()


class NotCalled(Exception):
    """pytest did not run the case, as with --setup-only."""


class CaseHooks:
    """Plugin that runs the selected cases, with one result each."""

    def __init__(self, worker: Worker, selection: CaseSelection) -> None:
        self._worker = worker
        self._selecting = selection

    def pytest_collection(self) -> None:
        """Boot the guest while cases are collected."""
        self.launch()

    def launch(self) -> None:
        """Start to boot the guest."""
        # The first case that needs the guest reports the error.
        with suppress(VmError):
            self._worker.launch()

    def pytest_collection_finish(self) -> None:
        """Begin as soon as cases are collected."""
        self.begin()

    def begin(self) -> None:
        """Set the probes of the selected cases."""
        self._worker.measure_with(self._selecting.probes, self._selecting.switches)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run and judge a case, and report its result."""
        case = case_of(item)
        if case is None:
            return None
        case = replace(case, tier=tier_of(case, item))

        function = item.function  # type: ignore[attr-defined]
        line = 0

        def attempt() -> BaseException | None:
            nonlocal line
            item.stash[_RAISED] = None
            # Every run of the case has new fixtures.
            item._initrequest()  # type: ignore[attr-defined]
            item.stash[_CALLED] = False
            runtestprotocol(item, log=False, nextitem=nextitem)
            if item.stash[_RAISED] is None and not item.stash[_CALLED]:
                return NotCalled("pytest made what the case needs, and did not run it")
            if isinstance(raised := item.stash[_RAISED], pytest.FixtureLookupError):
                why = "a case takes ue and the names of its table"
                return NotCalled(f"no argument is called {raised.argname!r}: {why}")
            if raised is not None:
                line = failing_line(function, raised)
            return raised

        where = _location(item)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=where)
        item.ihook.pytest_runtest_logreport(report=_started_report(item, case))
        result, first = self._worker.run(case, case_id(case, item), attempt)
        result = located(result, function, line)
        report = _result_report(item, result)
        plain = {"result": result.to_json(), "first": None if first is None else first.to_json()}
        setattr(report, DATA, plain | self._other_results())
        item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=where)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Finish when all cases have ended."""
        result = yield
        if not session.config.option.collectonly:
            self.finish(session)
        return result

    def finish(self, session: pytest.Session) -> None:
        """Run the remaining probes and report their results."""
        self._worker.finish()
        report = pytest.TestReport(session.nodeid, ("", None, ""), {}, "passed", None, "teardown")
        setattr(report, DATA, self._other_results())
        session.config.hook.pytest_runtest_logreport(report=report)

    def _other_results(self) -> dict[str, Any]:
        """Results that belong to no case, contradicted switches, and how the guest started."""
        return {
            "others": [each.to_json() for each in self._worker.take_other_results()],
            "contradictions": to_builtins(self._worker.contradictions),
            "start": self._worker.start,
        }

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep the exception of a case, of any phase, for its judgement."""
        if call.excinfo is not None and item.stash.get(_RAISED, False) is None:
            item.stash[_RAISED] = call.excinfo.value
        if call.when == "call":
            item.stash[_CALLED] = True
        return (yield)

    def pytest_unconfigure(self) -> None:
        """End the guest."""
        self._worker.close()


def _location(item: pytest.Item) -> tuple[str, int | None, str]:
    """item.location without the line, which is slow to find."""
    return item.nodeid.partition("::")[0], None, item.name


def _started_report(item: pytest.Item, case: Case) -> pytest.TestReport:
    """The report that a case begins: the worker may die in it."""
    report = pytest.TestReport(item.nodeid, _location(item), {}, "passed", None, "setup")
    setattr(report, DATA, {"begun": (case_id(case, item), case.tier.value)})
    return report


def _result_report(item: pytest.Item, result: CaseResult) -> pytest.TestReport:
    """The report of a case for pytest."""
    longrepr: Any = None
    outcome = "passed"
    if result.outcome in NOT_OK:
        outcome, longrepr = "failed", "\n".join(render_failure(result))
    elif result.outcome is not Outcome.PASS:
        outcome, longrepr = "skipped", (str(item.path), item.location[1] or 0, result.reason)
    report = pytest.TestReport(
        nodeid=item.nodeid,
        location=_location(item),
        keywords={},
        outcome=outcome,  # type: ignore[arg-type]
        longrepr=longrepr,
        when="call",
        duration=result.duration_s,
    )
    if result.outcome is Outcome.XFAIL:
        report.wasxfail = result.reason
    return report
