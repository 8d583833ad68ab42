"""Programs and C headers of the host, and the packages that provide them (packages.txt)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

TABLE = Path(__file__).with_name("packages.txt")

# In the order of the table's columns, as .ci/host-packages has them.
MANAGERS = {
    "apt-get": "apt-get install",
    "dnf": "dnf install",
    "zypper": "zypper install",
    "pacman": "pacman -S --needed",
}


class Tool(Struct, frozen=True):
    """A program on PATH, or a C header; `packages` are its packages in the order of MANAGERS."""

    name: str
    packages: tuple[str, ...]
    header: bool = False

    @property
    def present(self) -> bool:
        """Whether this host has it."""
        return _compiles(self.name) if self.header else shutil.which(self.name) is not None


@cache
def tools() -> Mapping[str, Tool]:
    """All programs and headers of the table, by name."""
    found = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            _, probe, *packages = line.split()
            kind, _, name = probe.partition(":")
            if kind != "module":
                found[name] = Tool(name, tuple(packages), header=kind == "header")
    return found


def missing(names: Iterable[str]) -> tuple[str, ...]:
    """Those of some tools that this host lacks, sorted."""
    return tuple(name for name in sorted(set(names)) if not tools()[name].present)


def install_command(names: Iterable[str]) -> str:
    """The command that installs some tools here, or that of each known package manager."""
    needed = [tools()[name] for name in names]
    commands = {manager: _command(number, needed) for number, manager in enumerate(MANAGERS)}
    for manager, command in commands.items():
        if shutil.which(manager):
            return f"install with: {command}"
    return f"install with one of: {'; '.join(commands.values())}"


def _command(number: int, needed: Iterable[Tool]) -> str:
    packages = sorted({tool.packages[number] for tool in needed})
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}{list(MANAGERS.values())[number]} {' '.join(packages)}"


def _compiles(header: str) -> bool:
    """Whether the compiler finds a header.  Without a compiler, that alone is missing."""
    if shutil.which("gcc") is None:
        return True
    argv = ["gcc", "-fsyntax-only", "-include", header, "-x", "c", "/dev/null"]
    return subprocess.run(argv, capture_output=True, check=False, timeout=30).returncode == 0
