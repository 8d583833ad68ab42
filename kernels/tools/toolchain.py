"""The host's compiler and linker, and the tools that a step requires."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from host import packages
from host.programs import output_of
from kernels.errors import MissingTool

_PROGRAMS = ("gcc", "ld")


def require(names: Iterable[str]) -> None:
    """Raise MissingTool with every absent tool and the command that installs them."""
    if absent := packages.missing(names):
        raise MissingTool(absent)


class Toolchain(Struct, frozen=True):
    """The compiler and linker of the host.

    `version`, the first lines of their --version, is part of a kernel's identity; `stamp` only
    saves asking for it again.
    """

    version: str
    stamp: str

    @classmethod
    def of_host(cls) -> Toolchain:
        """Ask gcc and ld for their versions: two short processes.  Raises MissingTool."""
        require(_PROGRAMS)
        return cls("; ".join(map(_version, _PROGRAMS)), stamp())


def stamp() -> str:
    """Path, size and time of gcc's and ld's files; "" if one is missing.  Starts no process."""
    marks = []
    for name in _PROGRAMS:
        found = shutil.which(name)
        if found is None:
            return ""
        real = Path(found).resolve()
        status = real.stat()
        marks.append(f"{real}:{status.st_size}:{status.st_mtime_ns}")
    return " ".join(marks)


def _version(program: str) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    return output_of([program, "--version"], 30, env=environment).splitlines()[0]
