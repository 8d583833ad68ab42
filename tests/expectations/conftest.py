"""A directory with one file of expectations."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cli import expectations
from conformance.expectations import loader
from tests.expectations.samples import FILE, KNOWN


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only file of expectations."""
    directory = tmp_path / "expectations"
    directory.mkdir()
    monkeypatch.setattr(loader, "DIRECTORY", directory)
    monkeypatch.setattr(expectations, "_case_ids", lambda: KNOWN)
    (directory / "user_events.toml").write_text(FILE)
    return directory / "user_events.toml"
