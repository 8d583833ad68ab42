"""Files that options name: absolute, and readable by each session of a command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.session.options import default_options, make_absolute, words
from conformance.session.target.target import kernel_id
from host.files import read_given
from kernels.errors import BrokenFile

TEXT = (Path(__file__).parents[2] / "fixtures/patches/git.diff").read_bytes()


@pytest.fixture
def pipe() -> Iterator[Path]:
    """As of the shell's <(git diff)."""
    ours, theirs = os.pipe()
    os.write(theirs, TEXT)
    os.close(theirs)
    yield Path(f"/dev/fd/{ours}")
    os.close(ours)


def test_a_file_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = default_options(patch=["fix.diff"], out="results")
    make_absolute(options)
    assert (options.patch, options.out) == ([f"{tmp_path}/fix.diff"], f"{tmp_path}/results")


def test_a_pipe_is_kept(pipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions read it again, also when the run is resumed or repeated."""
    monkeypatch.setenv("UEVT_CACHE", str(tmp_path / "store"))
    options = default_options(kernel="6.12", patch=[str(pipe)])
    make_absolute(options)
    make_absolute(options)
    (kept,) = options.patch
    assert Path(kept).read_bytes() == TEXT
    assert Path(kept).is_relative_to(tmp_path / "store" / "given")
    assert f"--patch={kept}" in words(options)
    assert kernel_id(options) == "6.12+pipe"


def test_a_pipe_without_content_is_named(pipe: Path) -> None:
    read_given(pipe)
    with pytest.raises(BrokenFile, match=f"{pipe}: the pipe is empty"):
        make_absolute(default_options(config=[str(pipe)]))
