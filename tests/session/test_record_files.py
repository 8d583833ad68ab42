"""The files of a run: an error in the least important ones costs only them."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results.directory import JUNIT, KTAP
from conformance.results.results_json import NAME
from conformance.session.controller import record_files
from tests.report.samples import mixed


def test_without_reproducers_every_other_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise FileNotFoundError(2, "No such file", "guarded.c")

    monkeypatch.setattr(record_files, "write_reproducers", fail)
    record_files.write_record_files(mixed(), tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {NAME, JUNIT, KTAP}
    assert "no repro/*.c: " in capsys.readouterr().err
