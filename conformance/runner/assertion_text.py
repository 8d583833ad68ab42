"""Describe a failed assertion of a case from its source.

Cases are loaded without pytest's assertion rewriting, which would take three times as long.
"""

from __future__ import annotations

import ast
import linecache
import textwrap
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

_LONGEST = 200
_EXPECTED = {
    ast.Eq: "{}",
    ast.Is: "{}",
    ast.In: "one of {}",
    ast.NotEq: "anything but {}",
    ast.IsNot: "anything but {}",
    ast.NotIn: "none of {}",
    ast.Lt: "less than {}",
    ast.LtE: "at most {}",
    ast.Gt: "more than {}",
    ast.GtE: "at least {}",
}


class FailedAssertion(Struct, frozen=True):
    """An assertion that failed.

    ``place`` is file:line, ``text`` the source with the values of its variables.  Of a comparison
    ``relation`` is what it expects in words, with {} for the right side.
    """

    place: str
    text: str
    relation: str = ""


def failed_assertion(error: AssertionError) -> FailedAssertion | None:
    """The assertion that raised an error; None where it has no traceback."""
    raised = error.__traceback__
    if raised is None:
        return None
    while raised.tb_next is not None:
        raised = raised.tb_next
    (frame,) = traceback.extract_tb(raised)
    place = f"{Path(frame.filename).name}:{frame.lineno}"
    if message := str(error).strip():
        return FailedAssertion(place, message)
    lines = linecache.getlines(frame.filename)[(frame.lineno or 1) - 1 : frame.end_lineno]
    source = textwrap.dedent("".join(lines)).strip()
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return FailedAssertion(place, source)
    known = raised.tb_frame.f_locals
    values = ", ".join(_values(tree, known))
    text = ast.unparse(tree) + (f", where {values}" if values else "")
    return FailedAssertion(place, text, _relation(tree))


def _relation(tree: ast.Module) -> str:
    match tree.body:
        case [ast.Assert(test=ast.Compare(ops=[operator]))]:
            return _EXPECTED[type(operator)]
        case _:
            return ""


def _values(tree: ast.AST, known: Mapping[str, object]) -> Iterator[str]:
    """NAME = VALUE of the variables of an assertion."""
    names = dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    for name in names:
        if name in known and _has_text(known[name]):
            yield f"{name} = {known[name]!r:.{_LONGEST}}"


def _has_text(value: object) -> bool:
    """Whether the repr of an object is more than its address."""
    return type(value).__repr__ is not object.__repr__
