"""The selection of cases: which of a file's mistakes are reported while it collects."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.expectations.loader import Expectations
from conformance.session import selection

UNKNOWN = """\
[[expectation]]
case = "write.{name}"
step = "any"
field = "errno"
pattern = "x"
reason = "a deviation"
when = "release >= 5.18"
"""


@pytest.mark.parametrize(
    ("name", "warns"), [("length", False), ("length.short", False), ("lengthy", True)]
)
def test_expectation_of_an_unknown_case_is_reported_with_its_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    warns: bool,
) -> None:
    file = tmp_path / "known.toml"
    file.write_text(UNKNOWN.format(name=name))
    known = Expectations.load(tmp_path)
    monkeypatch.setattr(Expectations, "load", lambda: known)
    selection._warn_of_unknown({"write.length"})
    message = f"uevt: {file}: expectation 1 names an unknown case: write.lengthy\n"
    assert capsys.readouterr().err == (message if warns else "")
