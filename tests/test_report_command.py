"""`uevt report`: forms and output files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance.results.outcome import Outcome
from tests.conftest import Uevt
from tests.report.samples import case, kernel, stored


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """Results of two kernels in one directory."""
    for record in (kernel("6.1", case("a.b")), kernel("6.12", case("a.b", Outcome.FAIL))):
        stored(tmp_path / "results" / record.head.kernel.id, record)
    return tmp_path / "results"


def test_text_is_the_default_form(kernels: Path, uevt: Uevt) -> None:
    printed = uevt("report", kernels)
    assert printed.out.splitlines()[1].split()[:3] == ["6.1", "6.1", "PASS"]
    assert "PASS -> FAIL a.b" in printed.out
    assert printed.err == ""


def test_both_forms_at_once(kernels: Path, uevt: Uevt) -> None:
    page = kernels / "page.html"
    assert uevt("report", kernels, "--html", page, "--markdown", "-").out.startswith("# user")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_page_of_runs_in_a_directory_whose_name_is_no_text(tmp_path: Path, uevt: Uevt) -> None:
    run = tmp_path / os.fsdecode(b"\xff")
    stored(run, kernel("6.12", case("a.b")))
    page = tmp_path / "page.html"
    uevt("report", run, "--html", page)
    assert r"\udcff" in page.read_text(encoding="utf-8")


def test_a_page_on_standard_output(kernels: Path, uevt: Uevt) -> None:
    assert uevt("report", kernels / "6.1", kernels / "6.12", "--html", "-").out.endswith(
        "</html>\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: does not exist; name a directory of results"),
        (
            [".", "--html", "-", "--markdown", "-"],
            "cannot take both forms; give one of them another file",
        ),
        (
            [".", "--html", "page", "--markdown", "./page"],
            "page: cannot take both forms; give one of them another file",
        ),
        (["6.1", "--html", "nowhere/page.html"], "nowhere/page.html: cannot be written"),
        (["6.1", "--html", "6.12"], "6.12: cannot be written: Is a directory"),
        ([], "the following arguments are required: RUN"),
    ],
)
def test_after_an_error_nothing_is_written(
    kernels: Path, monkeypatch: pytest.MonkeyPatch, uevt: Uevt, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(kernels)
    before = sorted(kernels.rglob("*"))
    printed = uevt("report", *arguments, code=2)
    assert message in printed.err
    assert printed.out == ""
    assert sorted(kernels.rglob("*")) == before
