"""The file of expectations that commands are asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cli import expectations
from conformance.expectations import loader
from tests.expectations.samples import FILE, KNOWN


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only file of expectations there is."""
    directory = tmp_path / "expectations"
    directory.mkdir()
    monkeypatch.setattr(loader, "DIRECTORY", directory)
    monkeypatch.setattr(expectations, "ROOT", tmp_path)
    monkeypatch.setattr(expectations, "_case_ids", lambda: KNOWN)
    (directory / "user_events.toml").write_text(FILE)
    return directory / "user_events.toml"
