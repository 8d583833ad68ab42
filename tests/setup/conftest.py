"""Fixtures of the tests of .ci."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.setup.fake_machine import FakeMachine


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """A machine with a shell, coreutils and Python, and no package manager."""
    return FakeMachine(tmp_path / "machine")
