"""Selecting cases and running them: the hooks of a process that has a guest."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.expression import Expression
from _pytest.mark.structures import ParameterSet
from _pytest.runner import runtestprotocol

import conformance.cases
from conformance.cases.declare import FULL_MARK, VARIANTS_MARK, Case, Tier, declared
from conformance.measured import Probe
from conformance.outcome import CaseResult, Outcome
from conformance.plugin.controller import (
    BEGUN,
    BESIDE,
    CONTRADICTIONS,
    EXPECTED,
    FIRST,
    RESULT,
    START,
    nothing_selected,
    refuse,
)
from conformance.plugin.order import Earlier, ordered
from conformance.plugin.target import Target
from conformance.plugin.worker import Worker
from conformance.report.failure import render_failure
from conformance.schema import encode
from vm.errors import VmError

# Where the cases are.
CASES = Path(conformance.cases.__file__).resolve().parent
_RAISED = pytest.StashKey[BaseException | None]()
_CALLED = pytest.StashKey[bool]()
_FAILED = frozenset({Outcome.FAIL, Outcome.XPASS, Outcome.CRASH, Outcome.TIMEOUT, Outcome.ERROR})


class NoExpression(ValueError):
    """A -k that cannot be read."""


class NotCalled(Exception):
    """A case that pytest did not run, as with --setup-only."""


def case_of(item: pytest.Item) -> Case | None:
    """The case an item runs, None for an ordinary test."""
    return declared(getattr(item, "function", None))


def _tier(case: Case, item: pytest.Item) -> Tier:
    """The tier of a variant: its case's, unless it is marked as one more of a kind."""
    return Tier.FULL if item.get_closest_marker(FULL_MARK.name) else case.tier


def _more(row: ParameterSet) -> bool:
    """Whether a row of a table is one more of a kind."""
    return any(mark.name == FULL_MARK.name for mark in row.marks)


def _named(item: pytest.Item) -> tuple[Case, str]:
    """The case that an item runs, and its id."""
    case = case_of(item)
    assert case is not None
    return case, _case_id(case, item)


def _case_id(case: Case, item: pytest.Item) -> str:
    callspec = getattr(item, "callspec", None)
    return case.id if callspec is None else f"{case.id}.{callspec.id}"


def _probes(items: list[pytest.Item]) -> list[Probe]:
    """The programs of the cases about a switch, selected or not, to be run beside the cases."""
    found = []
    for item in items:
        case = case_of(item)
        if case is not None and case.switch:
            found.append(Probe(case, item.function))  # type: ignore[attr-defined]
    return found


class Running:
    """Runs the selected cases of a session, one result each.

    One of several processes, which are not ``alone``, does not say that there are none.
    """

    def __init__(
        self, worker: Worker, target: Target, earlier: Earlier, *, alone: bool = True
    ) -> None:
        self._alone = alone
        self._worker = worker
        self._target = target
        self._earlier = earlier
        # There are cases, if not for this kernel.
        self._any_cases = False
        # The files that were looked through, and how many of their cases are to run.
        self._files: set[str] = set()
        self._selected = 0

    def pytest_collection(self, session: pytest.Session) -> None:
        """The guest boots while cases are collected."""
        if not session.config.option.collectonly:
            # The first case that needs it tells what is wrong.
            with suppress(VmError):
                self._worker.launch()

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(
        self, collector: pytest.Collector, obj: object
    ) -> list[pytest.Item] | None:
        """A case that is not for this kernel is no item: making one takes its time."""
        case = declared(obj)
        if case is not None:
            self._files.add(str(collector.path))
        if case is None or case.applies(self._target.profile):
            return None
        self._any_cases = True
        return []

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make the variants of a case that are of the tier."""
        quick = Tier(metafunc.config.option.tier) is Tier.QUICK
        for mark in metafunc.definition.iter_markers(VARIANTS_MARK.name):
            names, rows = mark.args
            metafunc.parametrize(names, [row for row in rows if not (quick and _more(row))])

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep the cases that apply to the kernel and match -k and --tier."""
        wanted = expression(config.option.keyword)
        tier = Tier(config.option.tier)
        cases = [item for item in items if case_of(item) is not None]
        dropped = [item for item in cases if not self._selects(item, tier, wanted)]
        if self._alone and (cases or self._any_cases) and len(dropped) == len(cases):
            refuse(config, nothing_selected(config, self._target))
        # From here on pytest must not match by file and function names as well.
        config.option.keyword = ""
        if dropped:
            config.hook.pytest_deselected(items=dropped)
        gone = set(dropped)
        kept = [item for item in cases if item not in gone]
        self._worker.measure_with(_probes(cases), {_named(item)[0].switch for item in kept})
        others = [item for item in items if case_of(item) is None]
        left = ordered(kept, _named, self._earlier, config.option.shuffle)
        # Those that had ended before the run went on are nobody's to take away.
        self._selected = len(left)
        items[:] = others + left

    def _selects(self, item: pytest.Item, tier: Tier, wanted: Expression | None) -> bool:
        case = case_of(item)
        assert case is not None
        if _tier(case, item) is Tier.FULL and tier is Tier.QUICK:
            return False
        return wanted is None or wanted.evaluate(_Matcher(_case_id(case, item)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a case, judge it, and report one result for it."""
        case = case_of(item)
        if case is None:
            return None
        case = replace(case, tier=_tier(case, item))

        def attempt() -> BaseException | None:
            item.stash[_RAISED] = None
            # Fixtures are made anew for every attempt.
            item._initrequest()  # type: ignore[attr-defined]
            item.stash[_CALLED] = False
            runtestprotocol(item, log=False, nextitem=nextitem)
            if item.stash[_RAISED] is None and not item.stash[_CALLED]:
                return NotCalled("pytest made what the case needs, and did not run it")
            return item.stash[_RAISED]

        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        item.ihook.pytest_runtest_logreport(report=_begun(item, case))
        result, first = self._worker.run(case, _case_id(case, item), attempt)
        report = _report(item, result, first)
        self._add_what_was_seen(report, item.config)
        item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Have a last look once all cases have ended."""
        result = yield
        if not session.config.option.collectonly:
            self.finish(session)
        return result

    def finish(self, session: pytest.Session) -> None:
        """Have a last look at the guest, and tell what there is to see."""
        self._worker.finish()
        report = pytest.TestReport(session.nodeid, ("", None, ""), {}, "passed", None, "teardown")
        self._add_what_was_seen(report, session.config)
        session.config.hook.pytest_runtest_logreport(report=report)

    def _add_what_was_seen(self, report: pytest.TestReport, config: pytest.Config) -> None:
        """Let a report tell what was found out beside the result of its case."""
        setattr(report, BESIDE, [each.to_json() for each in self._worker.take_beside()])
        setattr(report, CONTRADICTIONS, encode(self._worker.contradictions))
        setattr(report, START, self._worker.start)
        lost = sorted(Path(path).name for path in _files(config) - self._files)
        setattr(report, EXPECTED, {"selected": self._selected, "lost": lost})

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep what a case raised, in whatever phase: the judgement needs the exception."""
        if call.excinfo is not None and item.stash.get(_RAISED, False) is None:
            item.stash[_RAISED] = call.excinfo.value
        if call.when == "call":
            item.stash[_CALLED] = True
        return (yield)

    def pytest_unconfigure(self) -> None:
        """End the guest."""
        self._worker.close()


@cache
def _files(config: pytest.Config) -> frozenset[str]:
    """The files that a run of all cases has to look through; none where single ones were named."""
    named = {(config.invocation_params.dir / arg).resolve() for arg in config.args}
    if not named & {CASES, CASES.parent}:
        return frozenset()
    return frozenset(map(str, CASES.glob("test_*.py")))


class _Matcher:
    """-k matches parts of case ids, and nothing else of an item."""

    def __init__(self, case_id: str) -> None:
        self._case_id = case_id

    def __call__(self, name: str, /, **_: str | int | bool | None) -> bool:
        return name.lower() in self._case_id


def expression(keyword: str) -> Expression | None:
    """What -k says, None for nothing.  Raises NoExpression."""
    try:
        return Expression.compile(keyword) if keyword else None
    except SyntaxError as error:
        raise NoExpression(f"-k {keyword!r} is no expression: {error}") from error


def _begun(item: pytest.Item, case: Case) -> pytest.TestReport:
    """Tells the controller that a case begins: it may be the last that is heard of it."""
    report = pytest.TestReport(item.nodeid, item.location, {}, "passed", None, "setup")
    setattr(report, BEGUN, (_case_id(case, item), case.tier.value))
    return report


def _report(
    item: pytest.Item,
    result: CaseResult,
    first: CaseResult | None,
) -> pytest.TestReport:
    """The one report of a case; it carries what was found out to the controller."""
    longrepr: Any = None
    outcome = "passed"
    if result.outcome in _FAILED:
        outcome, longrepr = "failed", "\n".join(render_failure(result))
    elif result.outcome is not Outcome.PASS:
        outcome, longrepr = "skipped", (str(item.path), item.location[1] or 0, result.reason)
    report = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome=outcome,  # type: ignore[arg-type]
        longrepr=longrepr,
        when="call",
        duration=result.duration_s,
    )
    if result.outcome is Outcome.XFAIL:
        report.wasxfail = result.reason
    setattr(report, RESULT, result.to_json())
    setattr(report, FIRST, None if first is None else first.to_json())
    return report
