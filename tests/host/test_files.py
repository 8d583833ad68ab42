"""Files are replaced as a whole, and unfinished ones are swept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from host.files import TEMPORARY, read_record, sweep, write_atomically, write_record


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


def test_failed_write_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    write_atomically(file, b"one")

    def fail(_: int) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        write_atomically(file, "two")
    assert file.read_bytes() == b"one"
    assert names(tmp_path) == ["file"]


def test_umask_decides_the_mode(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("content", [None, b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_absent_or_damaged_record_is_none(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "record"
    if content is not None:
        file.write_bytes(content)
    assert read_record(file) is None
    write_record(file, {"a": 1})
    assert read_record(file) == {"a": 1}


def test_sweep_removes_unfinished_files_only(tmp_path: Path) -> None:
    (tmp_path / f"{TEMPORARY}file.1").touch()
    (tmp_path / "file").touch()
    sweep(tmp_path)
    assert names(tmp_path) == ["file"]
