"""Temporary files: in private directories, with unpredictable names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import modules

# Functions of tempfile whose file another process may create first.
PREDICTABLE = {"mktemp", "tempnam", "tmpnam"}
# A guest has no other users.
GUEST = (
    "vm.guest",
    "conformance.runner.user_modules",
    "conformance.cases",
    "conformance.client.programs",
)


def _strings_and_names(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr


def test_temporary_files_have_unpredictable_names() -> None:
    wrong = [
        f"{name}:{line}: {said}"
        for name, file in modules().items()
        if not name.startswith(GUEST)
        for line, said in _strings_and_names(file)
        if said in PREDICTABLE or said.startswith(("/tmp/", "/var/tmp"))
    ]
    assert wrong == []
