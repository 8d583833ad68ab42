"""Missing tools are all named at once, with the command that installs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernels.catalog.entries import load_catalog
from kernels.errors import HostTrouble, MissingTool
from kernels.tools import host_tools


def programs(directory: Path, *names: str) -> str:
    """A directory with programs of these names, to be a PATH."""
    for name in names:
        file = directory / name
        file.write_text("#!/bin/sh\nexit 0\n")
        file.chmod(0o755)
    return str(directory)


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "apt-get install bison libelf-dev xz-utils"),
        ("dnf", "dnf install bison elfutils-libelf-devel xz"),
        ("zypper", "zypper install bison libelf-devel xz"),
        ("pacman", "pacman -S bison libelf xz"),
    ],
)
@pytest.mark.parametrize(("user", "sudo"), [(0, ""), (1000, "sudo ")])
def test_the_command_is_that_of_the_machine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    manager: str,
    command: str,
    user: int,
    sudo: str,
) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path, manager))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    absent = [host_tools.TOOLS[name] for name in ("xz", "gelf.h", "bison")]
    assert host_tools.install_command(absent) == f"install with: {sudo}{command}"


def test_an_unknown_system_is_told_all_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = host_tools.install_command([host_tools.TOOLS["xz"]])
    assert [manager in said for manager in host_tools.MANAGERS] == [True] * 4


def test_everything_missing_is_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path, "gcc", "apt-get", "make"))
    with pytest.raises(MissingTool) as caught:
        host_tools.require(("make", "flex", "bison", "flex"))
    assert caught.value.names == ("bison", "flex")
    assert str(caught.value) == "missing on this machine: bison, flex"
    assert "install bison flex" in caught.value.hint
    assert isinstance(caught.value, HostTrouble)


def test_a_header_is_looked_for_by_the_compiler() -> None:
    assert host_tools.Tool("stddef.h", ("a", "b", "c", "d"), header=True).present
    assert not host_tools.Tool("no/such/header.h", ("a", "b", "c", "d"), header=True).present


def test_without_a_compiler_only_the_compiler_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [tool.name for tool in host_tools.missing(("gcc", "gelf.h"))] == ["gcc"]


def test_the_toolchain_names_compiler_and_linker() -> None:
    said = host_tools.toolchain()
    assert "gcc" in said.version
    assert "; GNU ld" in said.version
    assert said.stamp == host_tools.toolchain_stamp()
    assert said.stamp


def test_this_machine_can_build_the_kernels_that_ship() -> None:
    for entry in load_catalog().entries.values():
        assert host_tools.missing(entry.needs.tools) == ()
