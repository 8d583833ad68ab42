"""Fixtures that read KTAP as the kernel's tools do."""

from __future__ import annotations

import importlib.util
import inspect
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import tools_testing

GOLDEN = Path(__file__).resolve().parents[2] / "fixtures" / "report"


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Assert that a text equals its file; UEVT_UPDATE_GOLDEN=1 writes the file instead."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / name
        if os.environ.get("UEVT_UPDATE_GOLDEN"):
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return check


Kunit = Callable[[str], Any]
"""Reads KTAP as kunit.py does: to a test with `status`, `counts` and `subtests`."""


@pytest.fixture(scope="session", params=["6.1", "6.12", "7.3"])
def kernel_testing(request: pytest.FixtureRequest) -> Path:
    """tools/testing of a source tree in the build store; read-only."""
    return tools_testing(str(request.param))


@pytest.fixture(scope="session")
def kunit(kernel_testing: Path) -> Kunit:
    """kunit/kunit_parser.py."""
    # The store compares mtimes of source trees: do not write into them.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        printer, parser = (
            _module(kernel_testing / "kunit" / f"kunit_{part}.py") for part in ("printer", "parser")
        )
    finally:
        sys.dont_write_bytecode = before
    # Later versions take a printer.
    shown = "printer" in inspect.signature(parser.parse_run_tests).parameters
    to = [printer.Printer(output=io.StringIO())] if shown else []
    return lambda text: parser.parse_run_tests(text.splitlines(), *to)


def _module(file: Path) -> Any:
    """A module of this tree, registered so that the modules can import each other."""
    specification = importlib.util.spec_from_file_location(file.stem, file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[file.stem] = module
    specification.loader.exec_module(module)
    return module
