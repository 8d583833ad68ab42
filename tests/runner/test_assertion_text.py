"""What is told of an assertion that pytest has not rewritten."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.runner.assertion_text import stated


class Opaque:
    """Something that can only be told by its address."""


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
    assert len("abc") == 4


@pytest.mark.parametrize(
    ("fails", "told"),
    [
        (equal, "assert seen == [1, 3], where seen = [1, 2]"),
        (of_several_lines, "assert seen in (b'y', other), where seen = b'" + "x" * 198),
        (in_a_helper, "assert seen == [1, 3], where seen = [1, 2]"),
        (of_a_call, "assert len('abc') == 4"),
    ],
)
def test_the_assertion_and_what_it_compares(fails: Callable[[], None], told: str) -> None:
    with pytest.raises(AssertionError) as caught:
        fails()
    assert stated(AssertionError().with_traceback(caught.value.__traceback__)) == told


def test_one_without_a_place_or_source() -> None:
    assert stated(AssertionError()) == ""
    with pytest.raises(AssertionError) as caught:
        exec("assert 1 == 2")
    assert stated(caught.value) == ""
