"""The runner on guests that a case or its kernel changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.cases.case import Isolation
from conformance.client import tracefs
from conformance.ops.calls import Call, path_in
from conformance.results.case_result import CaseResult
from conformance.results.outcome import Blame, Outcome
from conformance.runner.runner import Runner
from tests.runner.fake_guest import PROFILE, RMDIR, Guest, needing

TAINTED = "/proc/sys/kernel/tainted"


class Taintable(Guest):
    """A guest with given taint flags."""

    tainted = "0\n"
    renewed = 0

    def _result(self, call: Call) -> dict[str, Any]:
        result = super()._result(call)
        if call[:2] == ["slurp", TAINTED]:
            result["data"] = self.tainted.encode().hex()
        return result

    def pristine(self, processors: int = 1, *, programs: bool = False) -> None:
        self.renewed += 1


def _run(runner: Runner, guest: Taintable, tainted: str, error: Exception | None) -> CaseResult:
    case = needing("")
    runner.begin(case, case.id)
    guest.tainted = tainted
    return runner.end(case, case.id, error)


def test_case_that_changes_its_guest_does_not_pass() -> None:
    guest = Taintable({})
    runner = Runner(PROFILE, lambda: guest, lambda error, before: None)
    result = _run(runner, guest, "512\n", None)
    assert (result.outcome, result.blame) == (Outcome.ERROR, Blame.CASE)
    assert result.reason == f"it left its guest changed: {TAINTED} was '0' and is '512'"
    # The next case has a new guest, whose taint is its own.
    assert _run(runner, guest, "512\n", None).outcome is Outcome.PASS
    assert guest.renewed == 1


class Opened(Guest):
    """A guest with a given mode of user_events_data."""

    mode = "100640 0:0"

    def _result(self, call: Call) -> dict[str, Any]:
        result = super()._result(call)
        if call == ["status", tracefs.DATA]:
            result["data"] = self.mode.encode().hex()
        return result


def test_kernel_that_opens_the_data_file_to_everybody_fails() -> None:
    guest = Opened({})
    guest.mode = "100666 0:0"
    runner = Runner(PROFILE, lambda: guest, lambda error, before: None)
    # The second case has a new guest of the same kernel.
    for isolation in (Isolation.FATAL, Isolation.EVENTS):
        case = replace(needing(""), isolation=isolation)
        runner.begin(case, case.id)
        runner.end(case, case.id, None)
    (result,) = runner.take_other_results()
    assert (result.id, result.outcome) == ("rights.closed_to_others", Outcome.FAIL)


def test_kernel_that_changes_its_guest_fails() -> None:
    """Nothing that a program does changes the mode; else the cleanup would have restored it."""
    guest = Opened({})
    runner = Runner(PROFILE, lambda: guest, lambda error, before: None)
    case = needing("")
    runner.begin(case, case.id).instance().make()
    guest.mode = "100666 0:0"
    result = runner.end(case, case.id, None)
    assert (result.outcome, result.blame) == (Outcome.FAIL, Blame.KERNEL)
    what = f"guest the mode of {tracefs.DATA}"
    assert result.reason.startswith(f"{what} changed from '100640 0:0' to '100666 0:0', ")
    assert [each.field for each in result.mismatches] == [what]


def test_warning_during_cleanup_is_blamed_on_the_kernel() -> None:
    class Warning(Taintable):
        def _result(self, call: Call) -> dict[str, Any]:
            if call[:2] == ["slurp", TAINTED] and self.tainted != "0\n":
                self._console.append("WARNING: late")
            return super()._result(call)

    guest = Warning({})
    runner = Runner(PROFILE, lambda: guest, lambda error, before: None)
    result = _run(runner, guest, "512\n", None)
    assert (result.outcome, result.blame) == (Outcome.FAIL, Blame.KERNEL)
    assert result.reason == "the kernel complained: WARNING: late"


def test_case_that_leaves_nothing_ends_in_one_request() -> None:
    class Counting(Guest):
        requests = 0

        def call(self, *arguments: Any, **more: Any) -> list[dict[str, Any]]:
            self.requests += 1
            return super().call(*arguments, **more)

    guest = Counting({})
    runner = Runner(PROFILE, lambda: guest, lambda error, before: None)
    case = needing("")
    runner.begin(case, case.id)
    before = guest.requests
    assert runner.end(case, case.id, None).outcome is Outcome.PASS
    assert guest.requests == before + 1


def test_failure_on_a_changed_guest_stays_a_failure() -> None:
    guest = Taintable({})
    runner = Runner(PROFILE, lambda: guest, lambda error, before: None)
    assert _run(runner, guest, "512\n", AssertionError("wrong")).outcome is Outcome.FAIL
    assert _run(runner, guest, "512\n", None).outcome is Outcome.PASS
    assert guest.renewed == 1


def test_instance_that_a_case_leaves_is_removed() -> None:
    """A case need not remove it, and still passes."""

    class Recording(Guest):
        def __init__(self) -> None:
            super().__init__({})
            self.removed: list[object] = []

        def _result(self, call: Call) -> dict[str, Any]:
            result = super()._result(call)
            if call[:2] == ["list", f"{tracefs.ROOT}/instances"] and not self.removed:
                result["data"] = b"t00001_i".hex() if self.made else ""
            if call[:2] == ["sys", RMDIR]:
                self.removed.append(call[2])
            return result

        made = False

    guest = Recording()
    runner = Runner(PROFILE, lambda: guest, lambda error, before: None)
    case = needing("")
    runner.begin(case, case.id).instance().make()
    guest.made = True
    assert runner.end(case, case.id, None).outcome is Outcome.PASS
    assert guest.removed == [[path_in(f"{tracefs.ROOT}/instances/t00001_i")]]
