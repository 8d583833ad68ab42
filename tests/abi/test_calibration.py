"""Bases that the suite was calibrated on."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.abi.calibration import CALIBRATED, warning
from conformance.results.summary import Summary

DIRECTORY = Path(__file__).resolve().parents[2] / "docs" / "results"


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("6.1.55", ""),
        ("6.12.117-uevt", ""),
        ("5.17", "base not calibrated: nearest 5.18.12"),
        ("5.18.19", "base not calibrated: nearest 5.18.12"),
        ("6.0.19", ""),
        ("6.6.1", ""),
        ("6.10.2", "base not calibrated: nearest 6.10"),
        ("6.15.3", "base not calibrated: nearest 6.14"),
        ("6.16.7", "base not calibrated: nearest 6.17"),
        ("7.9", "base not calibrated: nearest 7.3.4"),
        ("", ""),
        ("next-20261123", ""),
    ],
)
def test_warning(release: str, said: str) -> None:
    assert warning(release) == said


def test_each_calibrated_release_has_a_published_run() -> None:
    files = DIRECTORY.glob("*.json")
    published = {Summary.read(file).release.partition("-")[0].removesuffix(".0") for file in files}
    assert {str(each) for each in CALIBRATED} <= published
