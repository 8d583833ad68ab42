"""The source location of a failed case."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType
from typing import cast

import pytest

from conformance.results.outcome import Outcome
from conformance.runner.case_location import failing_line, located
from tests.report.samples import case

HERE = Path(__file__).relative_to(Path(__file__).parents[2]).as_posix()


@pytest.mark.parametrize("number", [1])
def failing(number: int) -> None:
    raise_elsewhere(number)


def raise_elsewhere(number: int) -> None:
    assert number == 2


FUNCTION = cast(FunctionType, failing)
DEFINITION = FUNCTION.__code__.co_firstlineno + 1


def test_the_innermost_line_of_the_file_is_the_failing_one() -> None:
    with pytest.raises(AssertionError) as caught:
        failing(1)
    line = failing_line(FUNCTION, caught.value)
    assert line == raise_elsewhere.__code__.co_firstlineno + 1
    assert located(case("a.b", Outcome.FAIL), FUNCTION, line).location == f"{HERE}:{line}"


def test_without_a_traceback_the_definition_is_the_location() -> None:
    assert failing_line(FUNCTION, AssertionError()) == 0
    for outcome in (Outcome.PASS, Outcome.FAIL, Outcome.XFAIL, Outcome.ERROR):
        assert located(case("a.b", outcome), FUNCTION, 0).location == f"{HERE}:{DEFINITION}"
