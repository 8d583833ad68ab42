"""The recorder is compiled once, and again when its sources change."""

from __future__ import annotations

from pathlib import Path

import pytest

from vm.recorder import program
from vm.recorder.program import compile_recorder


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were compiled, from a source below tmp_path, where the results are kept."""
    files: list[Path] = []

    def compile_c(what: str, sources: Path, file: Path) -> None:
        file.write_text((sources / "main.c").read_text())
        file.chmod(0o755)
        files.append(file)

    (tmp_path / "native").mkdir()
    (tmp_path / "native/main.c").write_text("first")
    monkeypatch.setattr(program, "_SOURCE", tmp_path / "native")
    monkeypatch.setattr(program, "_KEPT", tmp_path / "kept")
    monkeypatch.setattr(program, "compile_c", compile_c)
    return files


def test_same_sources(compiled: list[Path], tmp_path: Path) -> None:
    compile_recorder(tmp_path / "a")
    compile_recorder(tmp_path / "b")
    assert compiled == [tmp_path / "a"]
    assert (tmp_path / "b").read_text() == "first"
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o755


def test_other_sources(compiled: list[Path], tmp_path: Path) -> None:
    compile_recorder(tmp_path / "a")
    (tmp_path / "native/main.c").write_text("second")
    compile_recorder(tmp_path / "b")
    assert (tmp_path / "b").read_text() == "second"
    assert len([*(tmp_path / "kept").iterdir()]) == 1


def test_where_nothing_can_be_kept(compiled: list[Path], tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    compile_recorder(tmp_path / "a")
    compile_recorder(tmp_path / "b")
    assert compiled == [tmp_path / "a", tmp_path / "b"]
