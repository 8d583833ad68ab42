"""The worker: how often a case runs, and which of its results stands."""

from __future__ import annotations

from errno import ENOSPC
from pathlib import Path

import pytest

from conformance.cases.case import Case, Isolation, Tier
from conformance.results.case_result import Outcome
from conformance.session.target.target import Target
from conformance.session.worker.worker import Worker
from vm.errors import GuestCrashed

CASE = Case("a.b", "", "", "5.18..", (), Tier.QUICK, Isolation.EVENTS)


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

    result, first = worker.run(CASE, CASE.id, attempt)
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

    results = [worker.run(CASE, CASE.id, attempt)[0] for _ in range(10)]
    assert {each.outcome for each in results} == {outcome}
    assert done == runs
    assert sum(each.rerun is not None for each in results) == runs - 10
