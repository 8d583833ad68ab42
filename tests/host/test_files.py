"""Files are replaced as a whole; unfinished ones and scratch directories are swept."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from host import files
from host.files import (
    TEMPORARY,
    open_regular,
    read_given,
    read_record,
    sweep,
    write_atomically,
    write_record,
)
from host.temporary_directories import scratch
from host.temporary_directories import sweep as sweep_directories


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_sweep_neither_waits_nor_follows_links(tmp_path: Path) -> None:
    """Other users can create files in the temporary directory."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "file").touch()
    os.mkfifo(tmp_path / f"{TEMPORARY}fifo")
    (tmp_path / f"{TEMPORARY}link").symlink_to(theirs)
    sweep(tmp_path)
    assert names(tmp_path) == [f"{TEMPORARY}link", "theirs"]
    assert names(theirs) == ["file"]


def test_scratch_directory_vanishes_at_the_end(tmp_path: Path) -> None:
    with scratch(tmp_path) as directory:
        (directory / "file").touch()
        sweep_directories(tmp_path)
        assert names(directory) == ["file"]
    assert names(tmp_path) == []


def test_default_is_the_temporary_directory(
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
    sweep_directories(tmp_path)
    assert names(tmp_path) == ["mine"]


@pytest.mark.parametrize("read", [open_regular, read_given])
def test_what_could_block_is_refused(tmp_path: Path, read: Callable[[Path], object]) -> None:
    os.mkfifo(fifo := tmp_path / "fifo")
    for path in (fifo, Path("/dev/zero")):
        with pytest.raises(OSError, match=r"not a regular file|the pipe is empty"):
            read(path)
    with pytest.raises(IsADirectoryError):
        read(tmp_path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none")


def test_a_pipe_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    pipe = Path(f"/dev/fd/{ours}")
    try:
        writer = threading.Timer(0.2, os.write, (theirs, b"late"))
        writer.start()
        monkeypatch.setattr(files, "_PIPE_S", 1.0)
        # The other end is open: more could follow.
        with pytest.raises(OSError, match="the pipe did not end within 1 s"):
            read_given(pipe)
        writer.join()
        os.write(theirs, b"whole")
        os.close(theirs)
        # Whether "late" came before the limit, on a starved host.
        assert read_given(pipe).removeprefix(b"late") == b"whole"
        with pytest.raises(OSError, match="the pipe is empty"):
            read_given(pipe)
    finally:
        os.close(ours)


def test_a_given_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LONGEST", 1 << 20)
    (tmp_path / "file").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(OSError, match="holds more than 1 MiB"):
        read_given(tmp_path / "file")
