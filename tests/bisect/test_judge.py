"""What `uevt bisect` makes of a run, and of the names of cases."""

from __future__ import annotations

import pytest

from conformance.cli.bisect.judge import Chosen, NoVerdict, answer_of
from conformance.results.case_result import Outcome
from kernels.errors import UserMistake
from kernels.trees.git_bisect import Answer
from tests.bisect.fakes import CASE, FUNCTION, OLD_CASE, record_of
from tests.report.samples import case, run


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        *((state, Answer.GOOD) for state in ("good", "pass", "xfail")),
        *((state, Answer.BAD) for state in ("bad", "fail", "crash", "timeout", "xpass")),
        *((state, Answer.SKIP) for state in ("none", "skip", "adapted")),
        *((state, None) for state in ("error", "cut", "missing")),
    ],
)
def test_what_a_run_makes_of_its_commit(state: str, answer: Answer | None) -> None:
    record = record_of(state)
    results = tuple(each for each in record.cases if each.id == CASE)
    if answer is None:
        with pytest.raises(NoVerdict):
            answer_of(record, results, frozenset({CASE}))
    else:
        assert answer_of(record, results, frozenset({CASE}))[0] is answer


def test_one_case_that_fails_is_enough() -> None:
    """Whatever else was not judged; and what was not judged is no pass."""
    wanted = frozenset({"a.fails", "a.passes", "a.error"})
    results = (case("a.fails", Outcome.FAIL), case("a.passes"), case("a.error", Outcome.ERROR))
    assert answer_of(run(*results), results, wanted)[0] is Answer.BAD
    with pytest.raises(NoVerdict):
        answer_of(run(*results[1:]), results[1:], wanted - {"a.fails"})


def test_cases_by_their_id_or_their_functions() -> None:
    whole = Chosen.named([FUNCTION])
    assert CASE in whole.cases[0][1]
    assert len(whole.cases[0][1]) > 1
    assert Chosen.named([CASE]).cases[0][1] == {CASE}
    assert Chosen.named([CASE, FUNCTION]) == whole
    assert len(Chosen.named([FUNCTION, OLD_CASE]).cases) == 2
    with pytest.raises(UserMistake) as raised:
        Chosen.named(["multi_format.nane"])
    assert FUNCTION in raised.value.hint
