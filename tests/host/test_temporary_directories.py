"""Scratch directories vanish at the end, or are swept after their owner was killed."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest

from host.temporary_directories import scratch, sweep


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


def test_scratch_directory_vanishes_at_the_end(tmp_path: Path) -> None:
    with scratch(tmp_path) as directory:
        (directory / "file").touch()
        sweep(tmp_path)
        assert names(directory) == ["file"]
    assert names(tmp_path) == []


def test_the_temporary_directory_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch() as directory:
        assert directory.parent == tmp_path


def test_directory_of_a_killed_owner_is_swept(tmp_path: Path) -> None:
    pid = os.fork()
    if not pid:
        with scratch(tmp_path) as directory:
            (directory / "file").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert len(names(tmp_path)) == 1
    (tmp_path / "mine").mkdir()
    sweep(tmp_path)
    assert names(tmp_path) == ["mine"]
