"""What an assertion of a case says, read from its source when it fails.

pytest would have rewritten it beforehand, to be able to tell more; loading all cases so written
takes three times as long, and literals that are contradicted are few.
"""

from __future__ import annotations

import ast
import linecache
import textwrap
import traceback
from collections.abc import Iterator, Mapping

_LONGEST = 200


def stated(error: AssertionError) -> str:
    """The assertion that failed, and the values of the names in it; "" where there is no source."""
    raised = error.__traceback__
    if raised is None:
        return ""
    while raised.tb_next is not None:
        raised = raised.tb_next
    (place,) = traceback.extract_tb(raised)
    lines = linecache.getlines(place.filename)[(place.lineno or 1) - 1 : place.end_lineno]
    text = textwrap.dedent("".join(lines)).strip()
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    values = ", ".join(_values(tree, raised.tb_frame.f_locals))
    return ast.unparse(tree) + (f", where {values}" if values else "")


def _values(tree: ast.AST, known: Mapping[str, object]) -> Iterator[str]:
    """NAME = VALUE of what is compared, but for objects that can only be told by their address."""
    names = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    for name in dict.fromkeys(names):
        if name in known and type(known[name]).__repr__ is not object.__repr__:
            yield f"{name} = {known[name]!r:.{_LONGEST}}"
