"""The files of a run: an error in the least important ones costs only them."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.results.directory import JUNIT, KTAP
from conformance.results.outcome import Blame, Outcome
from conformance.results.results_json import NAME
from conformance.session.controller import record_files
from conformance.session.controller.recorder import Recorder
from conformance.session.target.target import Target
from tests.report.samples import case, mixed


def test_without_reproducers_every_other_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise FileNotFoundError(2, "No such file", "guarded.c")

    monkeypatch.setattr(record_files, "write_reproducers", fail)
    record_files.write_record_files(mixed(), tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {NAME, JUNIT, KTAP}
    assert "no repro/*.c: " in capsys.readouterr().err


@pytest.mark.parametrize(("release", "blame"), [("6.12.117", "kernel"), ("6.12.900", "model")])
def test_a_detail_of_an_unknown_base_is_an_error_of_the_model_first(
    release: str, blame: str, tmp_path: Path
) -> None:
    recorder = Recorder(Target("image", "6.12", release=release), tmp_path)
    for name, outcome in (("a.b", Outcome.NOTE), ("a.c", Outcome.FAIL)):
        recorder.case(replace(case(name, outcome), blame=Blame.KERNEL))
    assert [each.blame for each in recorder.finish(2, "").cases] == [blame, "kernel"]
