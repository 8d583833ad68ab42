"""Programs of the host, and the package table with its install commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from host import packages
from host.programs import ProgramFailed, output_of

USES = {"setup", "demand", "browser"}
KINDS = {"command", "header", "module"}


def rows() -> list[list[str]]:
    """The rows of the table, in words."""
    lines = packages.TABLE.read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def test_table_is_well_formed() -> None:
    assert {len(row) for row in rows()} == {2 + len(packages.MANAGERS)}
    assert {row[0] for row in rows()} == USES
    assert {row[1].partition(":")[0] for row in rows()} == KINDS
    probes = [row[1] for row in rows()]
    assert len(set(probes)) == len(probes)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH, which is empty."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "apt-get install bison libelf-dev xz-utils"),
        ("dnf", "dnf install bison elfutils-libelf-devel xz"),
        ("zypper", "zypper install bison libelf-devel xz"),
        ("pacman", "pacman -S --needed bison libelf xz"),
    ],
)
@pytest.mark.parametrize(("user", "sudo"), [(0, ""), (1000, "sudo ")])
def test_install_command_is_that_of_the_host(
    path: Path, monkeypatch: pytest.MonkeyPatch, manager: str, command: str, user: int, sudo: str
) -> None:
    (path / manager).touch(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    expected = f"install with: {sudo}{command}"
    assert packages.install_command(("xz", "gelf.h", "bison")) == expected


@pytest.mark.usefixtures("path")
def test_unknown_host_gets_the_command_of_each_manager() -> None:
    command = packages.install_command(["xz"])
    assert all(f"{manager} " in command for manager in packages.MANAGERS)


def test_compiler_finds_headers() -> None:
    assert packages.Tool("stddef.h", (), header=True).present
    assert not packages.Tool("no/such/header.h", (), header=True).present


@pytest.mark.usefixtures("path")
def test_without_a_compiler_only_the_compiler_is_missing() -> None:
    assert packages.missing(("gcc", "gelf.h")) == ("gcc",)


def test_the_output_is_that_of_the_program() -> None:
    assert output_of(["sh", "-c", "cat; echo $A; pwd"], 60, env={"A": "b"}, cwd="/") == "b\n/\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo more; echo why >&2; exit 1", "^why$"),
        ("echo why; exit 1", "^why$"),
        ("exit 3", "exit status 3"),
        ("exec sleep 60", "timed out after"),
    ],
)
def test_a_failure_says_what_was_printed_or_why(script: str, said: str) -> None:
    with pytest.raises(ProgramFailed, match=said):
        output_of(["sh", "-c", script], 2)
    with pytest.raises(ProgramFailed, match="No such file"):
        output_of(["/no/such/program"], 2)
