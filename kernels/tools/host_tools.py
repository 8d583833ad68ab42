"""The host's programs and headers that kernels need, and which packages bring them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.errors import MissingTool

# In the order of asking: a machine may have several, the first is its own.
MANAGERS = {
    "apt-get": "apt-get install",
    "dnf": "dnf install",
    "zypper": "zypper install",
    "pacman": "pacman -S",
}


@dataclass(frozen=True, slots=True)
class Tool:
    """One need: a program on PATH, or a C header the host's compiler finds.

    `packages` are its package names for apt-get, dnf, zypper and pacman, in this order.
    """

    name: str
    packages: tuple[str, str, str, str]
    header: bool = False

    @property
    def present(self) -> bool:
        """Whether this machine has it."""
        return _compiles(self.name) if self.header else shutil.which(self.name) is not None


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("apt-cache", ("apt", "apt", "apt", "apt")),
        Tool("apt-config", ("apt", "apt", "apt", "apt")),
        Tool("apt-get", ("apt", "apt", "apt", "apt")),
        Tool("bc", ("bc", "bc", "bc", "bc")),
        Tool("bison", ("bison", "bison", "bison", "bison")),
        Tool("bzip2", ("bzip2", "bzip2", "bzip2", "bzip2")),
        Tool("dpkg-deb", ("dpkg", "dpkg", "dpkg", "dpkg")),
        Tool("flex", ("flex", "flex", "flex", "flex")),
        Tool("gcc", ("gcc", "gcc", "gcc", "gcc")),
        Tool("git", ("git", "git", "git", "git")),
        Tool("gzip", ("gzip", "gzip", "gzip", "gzip")),
        Tool("ld", ("binutils", "binutils", "binutils", "binutils")),
        Tool("make", ("make", "make", "make", "make")),
        Tool("patch", ("patch", "patch", "patch", "patch")),
        Tool("spatch", ("coccinelle", "coccinelle", "coccinelle", "coccinelle")),
        Tool("setpriv", ("util-linux", "util-linux", "util-linux", "util-linux")),
        Tool("tar", ("tar", "tar", "tar", "tar")),
        Tool("zstd", ("zstd", "zstd", "zstd", "zstd")),
        Tool("xz", ("xz-utils", "xz", "xz", "xz")),
        # The C library's headers, without which no host program of kbuild compiles.
        Tool("stdio.h", ("libc6-dev", "glibc-devel", "glibc-devel", "glibc"), header=True),
        # objtool, which x86 kernels run over their objects, reads ELF with it.
        Tool(
            "gelf.h",
            ("libelf-dev", "elfutils-libelf-devel", "libelf-devel", "libelf"),
            header=True,
        ),
        # scripts/sign-file and certs/extract-cert, where modules can be signed.
        Tool(
            "openssl/evp.h",
            ("libssl-dev", "openssl-devel", "libopenssl-devel", "openssl"),
            header=True,
        ),
    )
}


def missing(names: Iterable[str]) -> tuple[Tool, ...]:
    """Those of the named tools (keys of TOOLS) that this machine lacks."""
    return tuple(TOOLS[name] for name in sorted(set(names)) if not TOOLS[name].present)


def require(names: Iterable[str]) -> None:
    """Raise MissingTool naming every absent tool and the command that installs them."""
    absent = missing(names)
    if absent:
        raise MissingTool([tool.name for tool in absent], install_command(absent))


def install_command(absent: Sequence[Tool]) -> str:
    """The command of this machine's package manager, or of all known ones if it has none."""
    for index, (manager, verb) in enumerate(MANAGERS.items()):
        if shutil.which(manager):
            return f"install with: {_command(verb, absent, index)}"
    offers = [_command(verb, absent, index) for index, verb in enumerate(MANAGERS.values())]
    return "install with one of: " + "; ".join(offers)


def _command(verb: str, absent: Sequence[Tool], index: int) -> str:
    packages = sorted({tool.packages[index] for tool in absent})
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}{verb} {' '.join(packages)}"


def _compiles(header: str) -> bool:
    """Whether the compiler finds a header; a header cannot be missed without a compiler."""
    if shutil.which("gcc") is None:
        return True
    argv = ["gcc", "-fsyntax-only", "-include", header, "-x", "c", "/dev/null"]
    return subprocess.run(argv, capture_output=True, check=False, timeout=30).returncode == 0


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The compiler and linker: what they say of themselves, and a cheap mark of the files.

    `version` is part of a kernel's identity; `stamp` only saves asking for it again.
    """

    version: str
    stamp: str


def toolchain_stamp() -> str:
    """Path, size and time of gcc's and ld's files; "" when one is missing.  Starts no process."""
    marks: list[str] = []
    for name in ("gcc", "ld"):
        found = shutil.which(name)
        if found is None:
            return ""
        real = Path(found).resolve()
        status = real.stat()
        marks.append(f"{real}:{status.st_size}:{status.st_mtime_ns}")
    return " ".join(marks)


def toolchain() -> Toolchain:
    """Ask gcc and ld for their versions (two short processes).  Raises MissingTool."""
    require(("gcc", "ld"))
    first_lines = []
    for name in ("gcc", "ld"):
        said = subprocess.run(
            [name, "--version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
            env={**os.environ, "LC_ALL": "C"},
        )
        first_lines.append(said.stdout.splitlines()[0])
    return Toolchain("; ".join(first_lines), toolchain_stamp())
