"""`uevt report`: forms and output files."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cli.main import main
from conformance.results.case_result import Outcome
from conformance.results.results_json import NAME, write_results
from conformance.results.run import RunRecord
from tests.report.samples import case, kernel


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """Results of two kernels in one directory."""
    for record in (kernel("6.1", case("a.b")), kernel("6.12", case("a.b", Outcome.FAIL))):
        keep(tmp_path / "results" / record.head.kernel.id, record)
    return tmp_path / "results"


def keep(directory: Path, record: RunRecord) -> None:
    directory.mkdir(parents=True)
    write_results(record, directory / NAME)


def test_text_is_the_default_form(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(kernels)]) == 0
    message = capsys.readouterr()
    assert message.out.splitlines()[1].split()[:3] == ["6.1", "6.1", "PASS"]
    assert "PASS -> FAIL a.b" in message.out
    assert message.err == ""


def test_both_forms_at_once(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = kernels / "page.html"
    assert main(["report", str(kernels), "--html", str(page), "--markdown", "-"]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert capsys.readouterr().out.startswith("# user")


def test_a_page_on_standard_output(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(kernels / "6.1"), str(kernels / "6.12"), "--html", "-"]) == 0
    assert capsys.readouterr().out.endswith("</html>\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: does not exist; name a directory of results"),
        (
            [".", "--html", "-", "--markdown", "-"],
            "cannot take both forms; give one of them a file",
        ),
        (["6.1", "--html", "nowhere/page.html"], "nowhere/page.html: cannot be written"),
        (["6.1", "--html", "6.12"], "6.12: cannot be written: Is a directory"),
        ([], "the following arguments are required: RUN"),
    ],
)
def test_after_an_error_nothing_is_written(
    kernels: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(kernels)
    before = sorted(kernels.rglob("*"))
    assert main(["report", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
    assert sorted(kernels.rglob("*")) == before
