"""A failed case: the text of an assertion that pytest has not rewritten, and its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import cast

import pytest

from conformance.results.outcome import Outcome
from conformance.runner.assertion_text import FailedAssertion, failed_assertion
from conformance.runner.case_location import failing_line, located
from tests.report.samples import case


class Opaque:
    """An object whose repr is its address."""


def answer() -> int:
    return 3


def equal() -> None:
    seen = [1, 2]
    assert seen == [1, 3]


def of_several_lines() -> None:
    seen, other = b"x" * 300, Opaque()
    assert seen in (
        b"y",
        other,
    )


def in_a_helper() -> None:
    equal()


def of_a_call() -> None:
    expected = 4
    assert answer() < expected - 4


def without_comparison() -> None:
    assert not answer()


@pytest.mark.parametrize(
    ("fails", "text", "relation"),
    [
        (equal, "assert seen == [1, 3], where seen = [1, 2]", "{}"),
        (
            of_several_lines,
            "assert seen in (b'y', other), where seen = b'" + "x" * 198,
            "one of {}",
        ),
        (in_a_helper, "assert seen == [1, 3], where seen = [1, 2]", "{}"),
        (of_a_call, "assert answer() < expected - 4, where expected = 4", "less than {}"),
        (without_comparison, "assert not answer()", ""),
    ],
)
def test_assertion_and_its_relation(fails: Callable[[], None], text: str, relation: str) -> None:
    with pytest.raises(AssertionError) as caught:
        fails()
    # Without the message of pytest, which rewrites this file.
    found = failed_assertion(AssertionError().with_traceback(caught.value.__traceback__))
    assert found is not None
    assert (found.text.splitlines()[0], found.relation) == (text, relation)
    name, _, line = found.place.partition(":")
    assert (name, line.isdecimal()) == ("test_assertion_text.py", True)


def test_place_is_the_line_of_the_assertion() -> None:
    with pytest.raises(AssertionError) as caught:
        in_a_helper()
    found = failed_assertion(caught.value)
    line = equal.__code__.co_firstlineno + 2
    assert found is not None
    assert found.place == f"test_assertion_text.py:{line}"


def test_message_of_an_assertion_comes_first() -> None:
    with pytest.raises(AssertionError) as caught:
        raise AssertionError("three is not four")
    found = failed_assertion(caught.value)
    assert found is not None
    assert found.text == "three is not four"


def test_assertion_without_source() -> None:
    assert failed_assertion(AssertionError()) is None
    with pytest.raises(AssertionError) as caught:
        exec("assert 1 == 2")
    assert failed_assertion(caught.value) == FailedAssertion("<string>:1", "")


# Source locations

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
