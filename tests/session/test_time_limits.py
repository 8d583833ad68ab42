"""Time limits of calls, cases and runs."""

from __future__ import annotations

from argparse import ArgumentParser

import pytest

from conformance.results.outcome import Blame, Outcome
from conformance.session.options import declare, groups_of
from conformance.session.time_limits import CaseTooLong, Limits, RunLimit, RunOver
from conformance.session.worker.blame import explain
from host.deadline import Deadline


def clipped(call: float, case: float | None, run: float | None) -> Deadline:
    found = Limits(RunLimit.of(run))
    if case is not None:
        found.begin(Deadline(case, "end of write.x", "60 s x 5 for tcg"))
    return found.clip(Deadline(call, "answer", "4 s x 5 for tcg"))


@pytest.mark.parametrize(
    ("call", "case", "run", "left"),
    [(20, None, None, 20), (20, 300, None, 20), (20, 3, None, 3), (20, 300, 5, 5), (20, 3, 5, 3)],
)
def test_call_deadline_is_clipped_to_case_and_run(
    call: float, case: float | None, run: float | None, left: float
) -> None:
    deadline = clipped(call, case, run)
    assert left - 1 < deadline.remaining() <= left
    assert deadline.what == "answer"


def test_calls_that_hang_shorten_later_ones() -> None:
    limits, left = Limits(None), []
    for _ in range(4):
        left.append(round(limits.clip(Deadline(20, "answer")).remaining()))
        limits.hung()
    assert left == [20, 10, 5, 5]


@pytest.mark.parametrize(
    ("case", "run", "error", "message", "blame"),
    [
        (0, None, CaseTooLong, r"no end of write.x within 0 s \(60 s x 5 for tcg\)", Blame.CASE),
        (300, 1e-9, RunOver, "the run's deadline of 1e-09 s has passed", Blame.HOST),
    ],
    ids=["case", "run"],
)
def test_passed_limit_is_no_verdict(
    case: float, run: float | None, error: type[Exception], message: str, blame: Blame
) -> None:
    with pytest.raises(error, match=message) as caught:
        clipped(20, case, run)
    trouble = explain(caught.value, True)
    assert trouble is not None
    assert (trouble.outcome, trouble.blame) == (Outcome.ERROR, blame)


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "soon", ""])
def test_invalid_deadline_is_refused(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    declare(groups_of(parser))
    with pytest.raises(SystemExit):
        parser.parse_args([f"--deadline={given}"])
    assert f"{given!r} is no number of seconds above 0" in capsys.readouterr().err
