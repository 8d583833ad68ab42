"""Files that options name: absolute, and readable by each session of a command."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.session.options import default_options, descriptors, make_absolute, words
from host.files import read_given
from kernels.errors import BrokenFile

TEXT = b"--- a/one\n+++ b/one\n"


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
    assert descriptors(options) == ()


def test_a_pipe_can_be_read_again_and_by_a_session(pipe: Path) -> None:
    options = default_options(patch=[str(pipe)], ktap="/dev/fd/1")
    make_absolute(options)
    (kept,) = options.patch
    assert f"--patch={kept}" in words(options)
    assert [read_given(Path(kept)), read_given(Path(kept))] == [TEXT, TEXT]
    passed = descriptors(options)
    assert passed == (1, int(kept.rpartition("/")[2]))
    for _ in range(2):
        assert subprocess.check_output(["cat", kept], pass_fds=passed) == TEXT
    os.close(passed[1])


def test_a_pipe_without_content_is_named(pipe: Path) -> None:
    read_given(pipe)
    with pytest.raises(BrokenFile, match=f"{pipe}: the pipe is empty"):
        make_absolute(default_options(config=[str(pipe)]))
