"""Finding and reading stored runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.results.directory import COVERAGE, link_latest
from conformance.results.errors import ReportError
from conformance.results.results_json import NAME
from conformance.results.stored_runs import latest_runs, read_runs
from tests.report.samples import case, head, kernel, run, stored

COVERED = {
    "source": "kernel/trace/trace_events_user.c",
    "lines": 950,
    "lines_percent": 95.2,
    "branches": 600,
    "branches_percent": 81.0,
    "missed_lines": [1, 2],
}
PERCENT = json.dumps([COVERED | {"lines_percent": "all"}])


RUN = run(case("a.b"))
SELF_CHECK = run(case("a.b"), head=head(self_check=True))


@pytest.mark.parametrize("named", [".", "model"])
def test_a_self_check_is_refused(tmp_path: Path, named: str) -> None:
    for name in ("model", "model-2"):
        stored(tmp_path / name, SELF_CHECK)
    with pytest.raises(ReportError, match="self-check, which judged no kernel"):
        read_runs([tmp_path / named])


def test_self_checks_next_to_kernels_are_ignored(tmp_path: Path) -> None:
    stored(tmp_path / "model", SELF_CHECK)
    stored(tmp_path / "6.1", kernel("6.1"))
    stored(tmp_path / "6.12", kernel("6.12"))
    assert [each.record.head.kernel.id for each in read_runs([tmp_path])] == ["6.1", "6.12"]


def test_a_parent_directory_stands_for_the_latest_run_of_each_kernel(tmp_path: Path) -> None:
    for kernel_id, stamps in (("6.1", "AB"), ("6.12", "C")):
        for stamp in stamps:
            link_latest(stored(tmp_path / kernel_id / stamp, RUN))
    stored(tmp_path / "7.3", RUN)
    (tmp_path / "notes").write_text("no run")
    found = [str(each.relative_to(tmp_path)) for each in latest_runs(tmp_path)]
    assert found == [f"6.1/latest/{NAME}", f"6.12/latest/{NAME}", f"7.3/{NAME}"]
    assert latest_runs(tmp_path / "6.1") == [tmp_path / "6.1" / "latest" / NAME]


def test_a_run_named_twice_is_read_once(tmp_path: Path) -> None:
    directory = stored(tmp_path / "6.12" / "stamp", RUN)
    link_latest(directory)
    assert len(read_runs([directory, tmp_path / "6.12", directory / NAME])) == 1


def test_coverage_is_read(tmp_path: Path) -> None:
    directory = stored(tmp_path / "run", RUN)
    (directory / COVERAGE).write_text(json.dumps([COVERED]))
    (covered,) = read_runs([directory])[0].covered
    assert str(covered) == (
        "kernel/trace/trace_events_user.c: 95.2 % of 950 lines, 81.0 % of 600 branches"
    )


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "[{}]", "3", '["a"]', PERCENT], ids=lambda text: text[:30]
)
def test_an_invalid_coverage_file_is_refused(tmp_path: Path, text: str) -> None:
    directory = stored(tmp_path / "run", RUN)
    (directory / COVERAGE).write_text(text)
    with pytest.raises(ReportError, match=r"coverage\.json: is (not a coverage file|not JSON): "):
        read_runs([directory])
