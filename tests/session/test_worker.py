"""The worker: how often a case runs, and which of its results stands."""

from __future__ import annotations

from collections.abc import Sequence
from errno import ENOSPC
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Divergence
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.ops import Observation, Open, Operation, Watch
from conformance.results.outcome import Outcome
from conformance.runner.case_run import CaseRun
from conformance.session.target.target import Target
from conformance.session.worker.worker import Worker
from tests.runner.fake_guest import PLAIN
from vm.errors import GuestCrashed


@pytest.mark.parametrize(
    ("repeat", "fails_in", "runs", "where"),
    [(1, 0, 1, ""), (20, 0, 20, ""), (20, 7, 7, " (run 7 of 20)"), (1, 1, 1, "")],
)
def test_case_is_repeated_until_it_fails(
    tmp_path: Path, repeat: int, fails_in: int, runs: int, where: str
) -> None:
    worker = Worker(Target("model", "6.12.117"), tmp_path, repeat=repeat)
    done = 0

    def attempt() -> BaseException | None:
        nonlocal done
        done += 1
        assert worker.begin().tracefs.status() == ""
        return AssertionError("wrong") if done == fails_in else None

    result, first = worker.run(PLAIN, PLAIN.id, attempt)
    assert (done, first) == (runs, None)
    assert result.outcome is (Outcome.FAIL if fails_in else Outcome.PASS)
    assert result.reason.endswith(where)


@pytest.mark.parametrize(
    ("error", "outcome", "runs"),
    [
        (GuestCrashed("a panic"), Outcome.CRASH, 10 + 8),
        (OSError(ENOSPC, "full"), Outcome.ERROR, 20),
    ],
)
def test_kernel_that_crashes_often_runs_few_cases_twice(
    tmp_path: Path, error: Exception, outcome: Outcome, runs: int
) -> None:
    """An error of the host says nothing about the kernel: its cases always run again."""
    worker = Worker(Target("model", "6.12.117"), tmp_path)
    done = 0

    def attempt() -> BaseException:
        nonlocal done
        done += 1
        worker.begin()
        return error

    results = [worker.run(PLAIN, PLAIN.id, attempt)[0] for _ in range(10)]
    assert {each.outcome for each in results} == {outcome}
    assert done == runs
    assert sum(each.rerun is not None for each in results) == runs - 10


@pytest.mark.parametrize("again", ["EPERM", ""])
def test_misled_case_runs_again_operation_by_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    """It fails even if the kernel refuses open(2) in the first run only."""
    errors = ["EPERM", again]
    begun: list[bool] = []

    class Refusing(ModelExecutor):
        def execute(
            self, operations: Sequence[Operation], watches: Sequence[Watch]
        ) -> list[Observation]:
            seen = super().execute(operations, watches)
            for number, operation in enumerate(operations):
                if isinstance(operation, Open) and (error := errors.pop(0) if errors else ""):
                    seen[number] = replace(seen[number], value=-1, errno=error)
            return seen

    def start(self: CaseRun, model: Model, _: object, serial: int, *, ahead: bool) -> UserEvents:
        begun.append(ahead)
        return begin(self, model, Refusing(Model(model.profile)), serial, ahead=ahead)

    begin = CaseRun.start
    monkeypatch.setattr(CaseRun, "start", start)
    worker = Worker(Target("model", "6.12.117"), tmp_path)

    def attempt() -> BaseException | None:
        try:
            worker.begin().event()
        except Divergence as found:
            return found
        return None

    result, _ = worker.run(PLAIN, PLAIN.id, attempt)
    assert (result.outcome, result.mismatches[0].observed) == (Outcome.FAIL, "EPERM")
    assert begun == [True, False]
