"""The published record of a run, and those in docs/results; `make matrix` refreshes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.results import summary
from conformance.results.case_result import CASE_ID
from conformance.results.errors import ReportError
from conformance.results.frozen import DOCS
from conformance.results.outcome import Outcome
from conformance.results.summary import RecordedCase, Summary
from tests.report.samples import case, head, run, stored


def test_a_summary_has_outcome_and_program_of_every_case() -> None:
    found = Summary.of(
        run(case("write.b", Outcome.FAIL, digest="12" * 32), case("write.a", digest="ab" * 32))
    )
    assert (found.kernel, found.release, found.verdict) == ("6.12", "6.12.117", "FAIL")
    assert list(found.cases.items()) == [
        ("write.a", RecordedCase("PASS", "abababababab")),
        ("write.b", RecordedCase("FAIL", "121212121212")),
    ]


def test_a_written_summary_is_read_back(tmp_path: Path) -> None:
    record = run(case("write.a", digest="ab" * 32), case("write.b"))
    stored(tmp_path / "run", record)
    assert summary.main([str(tmp_path / "run"), str(tmp_path / "kept")]) == 0
    assert Summary.read(tmp_path / "kept" / "6.12.json") == Summary.of(record)
    assert summary.main([f"mine={tmp_path / 'run'}", str(tmp_path / "kept")]) == 0
    assert Summary.read(tmp_path / "kept" / "mine.json").kernel == "mine"
    text = (tmp_path / "kept" / "6.12.json").read_text()
    assert '\n  "write.a": ["PASS", "abababababab"],\n' in text


@pytest.mark.parametrize(
    "text", ["", "[" * 100_000, "[]", "{}", '{"cases": {"a": ["PASS"]}}', '{"cases": 1}']
)
def test_any_other_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "6.12.json"
    path.write_text(text)
    with pytest.raises(ReportError, match=r"6\.12\.json: is (not a summary|not JSON): "):
        Summary.read(path)


@pytest.mark.parametrize("wrong", [{"head": head(self_check=True)}, {"selected": 2}])
def test_a_run_without_a_verdict_is_not_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: dict[str, Any]
) -> None:
    stored(tmp_path / "run", run(case("write.a"), **wrong))
    assert summary.main([str(tmp_path / "run"), str(tmp_path / "kept")]) == 2
    assert "has no verdict about a kernel" in capsys.readouterr().err
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_missing_run_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert summary.main([str(tmp_path / "none"), str(tmp_path)]) == 2
    assert "results.json" in capsys.readouterr().err
    assert summary.main([str(tmp_path)]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(
    "path", sorted((DOCS / "results").glob("*.json")), ids=lambda path: path.stem
)
def test_a_recorded_run_passed(path: Path) -> None:
    record = Summary.read(path)
    assert (record.kernel, record.verdict) == (path.stem, "PASS")
    outcomes = {case.outcome for case in record.cases.values()}
    assert outcomes <= {"PASS", "XFAIL", "SKIP", "CHANGED", "NOTE"}
    assert all(map(CASE_ID.fullmatch, record.cases))
    assert path.read_text() == record.to_text()
