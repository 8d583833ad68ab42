"""Verdicts of runs, and selection of cases."""

from __future__ import annotations

import pytest

from conformance.cli.bisect.judge import NoVerdict, SelectedCases, answer_of
from conformance.results.outcome import Level, Outcome
from kernels.errors import UserMistake
from kernels.trees.git_bisect import Answer
from tests.bisect.conftest import CASE, FUNCTION, OLD_CASE, record_of
from tests.report.samples import case, head, run


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        *((state, Answer.GOOD) for state in ("good", "pass", "xfail", "fixed", "note")),
        *((state, Answer.BAD) for state in ("bad", "fail", "crash", "timeout")),
        *((state, Answer.SKIP) for state in ("none", "skip", "adapted")),
        *((state, None) for state in ("error", "cut", "missing")),
    ],
)
def test_verdict_of_a_run(state: str, answer: Answer | None) -> None:
    record = record_of(state)
    results = tuple(each for each in record.cases if each.id == CASE)
    if answer is None:
        with pytest.raises(NoVerdict):
            answer_of(record, results, frozenset({CASE}))
    else:
        assert answer_of(record, results, frozenset({CASE}))[0] is answer


def test_one_failing_case_is_bad() -> None:
    """Even if other cases were not judged; a case that was not judged is no pass."""
    wanted = frozenset({"a.fails", "a.passes", "a.error"})
    results = (case("a.fails", Outcome.FAIL), case("a.passes"), case("a.error", Outcome.ERROR))
    assert answer_of(run(*results), results, wanted)[0] is Answer.BAD
    with pytest.raises(NoVerdict):
        answer_of(run(*results[1:]), results[1:], wanted - {"a.fails"})


def test_a_leak_of_a_passing_case_is_bad() -> None:
    results = (case("a.b"), case("a.b.leftover", Outcome.FAIL))
    assert answer_of(run(*results), results, frozenset({"a.b"}))[0] is Answer.BAD


def test_the_line_decides_what_is_bad() -> None:
    results = (case("a.b", Outcome.CHANGED),)
    for line, answer in ((Level.CONTRACT, Answer.GOOD), (Level.BEHAVIOUR, Answer.BAD)):
        record = run(*results, head=head(fail_on=line))
        assert answer_of(record, results, frozenset({"a.b"}))[0] is answer


def test_cases_by_id_or_function() -> None:
    whole = SelectedCases.named([FUNCTION])
    assert CASE in whole.cases[0][1]
    assert len(whole.cases[0][1]) > 1
    assert SelectedCases.named([CASE]).cases[0][1] == {CASE}
    assert whole.level is Level.CONTRACT
    assert SelectedCases.named([FUNCTION, "event_files.enable"]).level is Level.DETAIL
    assert SelectedCases.named([f"{CASE}.leftover"]) == SelectedCases.named([CASE])
    assert SelectedCases.named([CASE, FUNCTION]) == whole
    assert len(SelectedCases.named([FUNCTION, OLD_CASE]).cases) == 2
    with pytest.raises(UserMistake) as raised:
        SelectedCases.named(["multi_format.nane"])
    assert FUNCTION in raised.value.hint
