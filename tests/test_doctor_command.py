"""`uevt doctor` names all that the host lacks, and how to install it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Uevt


@pytest.fixture(autouse=True)
def bare_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without programs and without a build store."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("UEVT_CACHE", str(tmp_path / "store"))


def test_missing_programs_are_named(uevt: Uevt) -> None:
    lines = uevt("doctor", code=3).out.splitlines()
    assert lines[0].startswith("MISSING qemu ")
    tools = "bc, bison, flex, gcc, gzip, ld, make, setpriv"
    assert lines[1].startswith(f"MISSING build tools  missing on this host: {tools}; install with")
    # Nothing is booted before all else is there.
    assert not any("accelerator" in line for line in lines)


def test_findings_as_json(uevt: Uevt, tmp_path: Path) -> None:
    findings = json.loads(uevt("doctor", "--json", code=3).out)
    assert [(each["what"], each["ok"]) for each in findings[:2]] == [
        ("qemu", False),
        ("build tools", False),
    ]
    assert findings[0]["hint"]
    assert f"{tmp_path}/store" in findings[2]["detail"]
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("place", "why"),
    [("my store", "refuses paths with a space"), ("file/store", "/file is no directory")],
)
def test_place_where_no_kernel_can_be_built(
    uevt: Uevt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, why: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("UEVT_CACHE", str(tmp_path / place))
    findings = {each["what"]: each for each in json.loads(uevt("doctor", "--json", code=3).out)}
    assert not findings["build store"]["ok"]
    assert why in findings["build store"]["detail"]
    assert "UEVT_CACHE" in findings["build store"]["hint"]
