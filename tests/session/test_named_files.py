"""Files that a command names by absolute paths: guests get their directories."""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from conformance.session.program_guest import directories_named
from kernels.errors import UserMistake


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """An existing file outside of the working directory."""
    (tmp_path / "work").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "client").touch()
    return tmp_path / "other" / "client"


@pytest.mark.parametrize(
    "command",
    [
        ["{}", "--fast"],
        ["{}"],
        ["{}; echo $?"],
        ["A=1 {} </dev/null"],
        ["python3", "{}"],
        ["{}", "{}"],
    ],
)
def test_directory_of_a_named_file_is_exported(named: Path, command: list[str]) -> None:
    words = [each.format(named) for each in command]
    assert directories_named(words, named.parents[1] / "work") == (named.parent,)


@pytest.mark.parametrize(
    "command",
    [
        ["./client"],
        ["sh", "-c", "true"],
        ["/bin/sh", "/etc/passwd"],
        ["cat", "/sys/kernel/tracing/user_events_data", "/proc/self/status"],
        ["/missing/client", "x"],
        ["echo", f"/tmp/{'x' * 5000}", "/tmp/a\0b"],
        ["/", "//", "/x"],
        ["echo 'unbalanced"],
        [""],
    ],
)
def test_nothing_else_is_exported(named: Path, command: list[str]) -> None:
    assert directories_named(command, named.parents[1] / "work") == ()


def test_file_of_tmp_is_exported_alone() -> None:
    with NamedTemporaryFile(dir="/tmp") as file:
        assert directories_named([file.name], Path("/")) == (Path(file.name),)


def test_program_above_the_working_directory_is_refused(named: Path) -> None:
    with pytest.raises(UserMistake) as refused:
        directories_named(["../other/client"], named.parents[1] / "work")
    assert refused.value.hint == f"name the program by its absolute path: {named}"
    with pytest.raises(UserMistake) as refused:
        directories_named(["../here/client"], named.parents[1] / "here")
    assert refused.value.hint == "name the program by ./client"
