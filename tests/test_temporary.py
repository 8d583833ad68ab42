"""Files for a moment: in directories of our own, by names that nobody can know beforehand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import modules

# What tempfile makes by a name that somebody else may be the first to use.
PREDICTABLE = {"mktemp", "tempnam", "tmpnam"}
# In the guest nobody else is.
GUEST = ("vm.guest", "conformance.runner.user_modules", "conformance.cases")


def _strings_and_names(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr


def test_nothing_is_made_by_a_name_that_others_can_take_first() -> None:
    wrong = [
        f"{name}:{line}: {said}"
        for name, file in modules().items()
        if not name.startswith(GUEST)
        for line, said in _strings_and_names(file)
        if said in PREDICTABLE or said.startswith(("/tmp/", "/var/tmp"))
    ]
    assert wrong == []
