"""The directory of a run: create, refuse, resume, clear."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conformance.results.directory import (
    claim,
    default_directory,
    link_latest,
    require_empty,
    reserved,
)
from conformance.results.errors import ReportError
from host.files import sweep


def test_the_default_directory_is_named_by_kernel_and_time() -> None:
    now = datetime(2026, 11, 20, 17, 44, 5, tzinfo=UTC)
    assert default_directory(Path("results"), "6.12", now) == Path("results/6.12/20261120T174405Z")


def test_a_new_directory_is_created_and_left_empty(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    claim(directory)
    assert list(directory.iterdir()) == []


def test_a_directory_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.json").touch()
    with pytest.raises(ReportError, match="is not empty") as caught:
        claim(tmp_path, force=False)
    assert caught.value.hint == "name another --out, or add --force"
    with pytest.raises(ReportError, match="is not empty") as caught:
        claim(tmp_path)
    assert caught.value.hint == "name another --out"


def test_resume_keeps_the_files(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("{}\n")
    claim(tmp_path, resume=True)
    assert (tmp_path / "journal.jsonl").read_text() == "{}\n"


def test_force_removes_only_files_of_a_run_and_its_guests(tmp_path: Path) -> None:
    files = ("journal.jsonl", "results.json", "results.ktap", "junit.xml", "qemu.log")
    for name in (*files, "thesis.tex"):
        (tmp_path / name).touch()
    for guest in ("gw0", "gw11", "gwent"):
        (tmp_path / guest).mkdir()
        for name in ("console.log", "qemu.log"):
            (tmp_path / guest / name).touch()
    (tmp_path / "gw11" / "notes").touch()
    claim(tmp_path, force=True)
    left = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*"))
    guests = ["gw11", "gw11/notes", "gwent", "gwent/console.log", "gwent/qemu.log"]
    assert left == [*guests, "thesis.tex"]


def test_two_runs_of_one_second_get_two_directories(tmp_path: Path) -> None:
    wanted = tmp_path / "6.12" / "20261120T174405Z"
    found = [reserved(wanted) for _ in range(3)]
    assert [each.name for each in found] == [wanted.name, f"{wanted.name}-2", f"{wanted.name}-3"]
    assert all(each.is_dir() for each in found)


def test_temporary_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    for name in (".uevt-results.json.abc", "results.json", ".uevt-of-mine"):
        (tmp_path / name).touch()
    (tmp_path / ".uevt-gw0").mkdir()
    with (tmp_path / ".uevt-of-mine").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        sweep(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [".uevt-of-mine", "results.json"]


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ReportError, match="cannot be written"):
            claim(directory)


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    for refuse in (claim, require_empty):
        with pytest.raises(ReportError, match="cannot be written: File name too long"):
            refuse(tmp_path / ("a" * 300))


@pytest.mark.parametrize(
    ("number", "refused"),
    [(errno.EROFS, ReportError), (errno.EACCES, ReportError), (errno.ENOSPC, OSError)],
)
def test_only_errors_of_the_user_are_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, refused: type[Exception]
) -> None:
    def fail(**_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    with pytest.raises(refused, match=os.strerror(number)):
        claim(tmp_path)


def test_latest_points_to_the_last_run(tmp_path: Path) -> None:
    for name in ("first", "second"):
        claim(tmp_path / name)
        link_latest(tmp_path / name)
    latest = tmp_path / "latest"
    assert latest.readlink() == Path("second")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["first", "latest", "second"]
    # A run that was resumed, or judged before, is not the newest.
    link_latest(tmp_path / "first")
    assert latest.readlink() == Path("second")
