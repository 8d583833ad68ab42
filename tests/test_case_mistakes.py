"""Mistakes in cases: each is named with file, line and values, and blamed on the case."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results.case_result import CaseResult
from conformance.results.outcome import Blame
from conformance.results.results_json import NAME, read_results
from tests.commands import ended
from tests.test_false_green import PYTEST, drill


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CaseResult]:
    out = tmp_path_factory.mktemp("mistakes") / "out"
    drill(out, "mistakes.py", "--tb=no", "--assert=plain", code=1)
    return {case.id: case for case in read_results(out / NAME).cases}


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("drill.name", "mistakes.py:14: NameError: name 'eu' is not defined"),
        ("drill.argument", "NotCalled: no argument is called 'eu'"),
        ("drill.returned", "mistakes.py:26: the case expects 9, the kernel gave 8"),
        ("drill.derived", "mistakes.py:33: the case expects 3, the kernel gave 2"),
        ("drill.computed", "mistakes.py:40: the case expects less than 0, the kernel gave 0"),
    ],
)
def test_mistake_is_blamed_on_the_case(
    results: dict[str, CaseResult], case: str, reason: str
) -> None:
    assert results[case].reason.startswith(reason)
    assert results[case].blame is Blame.CASE
    assert results[case].file.endswith("mistakes.py")
    assert results[case].line


@pytest.mark.parametrize(
    ("text", "why", "guests"),
    [
        ("def f(:\n", "test_x.py:1: SyntaxError: invalid syntax", "1"),
        ("import os\nimport nothing\n", "test_x.py:2: ModuleNotFoundError: No module", "1"),
        ("raise ValueError('of a drill')\n", "test_x.py:1: ValueError: of a drill", "2"),
    ],
)
def test_file_that_cannot_be_loaded_is_the_only_cause_named(
    tmp_path: Path, text: str, why: str, guests: str
) -> None:
    file = tmp_path / "test_x.py"
    file.write_text(text)
    words = [*PYTEST, str(file), "-c", "pyproject.toml", "-p", "uevt", f"--out={tmp_path / 'out'}"]
    words += ["--kernel=model", "-p", "no:terminalreporter", f"--guests={guests}"]
    done = ended(words, None)
    assert done.returncode not in (0, 1)
    assert f"{file}: {why}" in done.stderr
    assert "Hint" not in done.stderr
    assert "nothing selected" not in done.stderr


def test_list_of_cases_is_no_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "5 tests collected" in drill(out, "mistakes.py", "--collect-only")
    assert not out.exists()
