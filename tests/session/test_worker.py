"""The worker: how often a case runs, and which of its results stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cases.case import Case, Isolation, Tier
from conformance.results.case_result import Outcome
from conformance.session.target.target import Target
from conformance.session.worker.worker import Worker

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
