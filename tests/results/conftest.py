"""Fixtures of tests that write files of a run."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Path of the journal."""
    return tmp_path / "journal.jsonl"
