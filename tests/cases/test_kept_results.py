"""The published record in docs/results is well-formed; `make matrix` refreshes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results.case_result import CASE_ID
from conformance.results.summary import Summary

DIRECTORY = Path(__file__).resolve().parents[2] / "docs" / "results"
RECORDS = sorted(DIRECTORY.glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_recorded_run_passed(path: Path) -> None:
    record = Summary.read(path)
    assert (record.kernel, record.verdict) == (path.stem, "PASS")
    assert {case.outcome for case in record.cases.values()} <= {
        "PASS",
        "XFAIL",
        "SKIP",
        "CHANGED",
        "NOTE",
    }
    assert all(map(CASE_ID.fullmatch, record.cases))
    assert path.read_text() == record.to_text()
