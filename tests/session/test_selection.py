"""Selection of cases, and the number of those that apply."""

from __future__ import annotations

import pytest

from conformance.cases.case import variants
from conformance.session.selection import _variants_of


def plain() -> None:
    """A function without variants."""


@variants(("a", 1), ("b", 2), ("c", 3))
def table(number: int) -> None:
    """A function with three rows."""


@pytest.mark.parametrize(("function", "number"), [(plain, 1), (table, 3)])
def test_variants_of_both_tiers_are_counted(function: object, number: int) -> None:
    assert _variants_of(function) == number
