"""The variants of cases: a case with one row of its tables, which a run counts as a case."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from conformance.cases.case import FULL_MARK, VARIANTS_MARK, Case, Tier, declared
from conformance.cases.discovery import case_modules


class Variant(Struct, frozen=True):
    """A case with one row of its tables."""

    id: str
    case: Case
    function: Callable[..., None]
    arguments: Mapping[str, Any]
    tier: Tier


def all_variants() -> list[Variant]:
    """All variants, in the order of files and functions."""
    return [
        variant
        for module in case_modules()
        for function in vars(module).values()
        if getattr(function, "__module__", None) == module.__name__
        for variant in variants_of(function)
    ]


def variants_of(function: Callable[..., None]) -> Iterator[Variant]:
    """The variants of a function, none if it is no case."""
    case = declared(function)
    if case is None:
        return
    name = VARIANTS_MARK.name
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == name]
    tables = [_rows(*mark.args) for mark in marks]
    for rows in itertools.product(*tables):
        arguments = {name: value for _, row, _ in rows for name, value in row.items()}
        suffix = "-".join(key for key, _, _ in rows)
        name = f"{case.id}.{suffix}" if rows else case.id
        tier = Tier.FULL if any(more for _, _, more in rows) else case.tier
        yield Variant(name, case, function, arguments, tier)


def _rows(names: str, parameters: list[Any]) -> list[tuple[str, dict[str, Any], bool]]:
    """(variant id, arguments, whether it is full) of each row of a table."""
    split = [name.strip() for name in names.split(",")]
    return [
        (row.id, dict(zip(split, row.values, strict=True)), FULL_MARK in row.marks)
        for row in parameters
    ]
