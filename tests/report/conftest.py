"""Comparing rendered text with what somebody has looked at and found good."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

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
