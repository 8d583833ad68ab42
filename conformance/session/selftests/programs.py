"""Upstream's test programs, compiled from a kernel tree."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from host.programs import ProgramFailed, output_of
from kernels.errors import HostTrouble, UserMistake

DIRECTORY = "tools/testing/selftests/user_events"
_COMPILE_S = 300.0
# 6.1 to 6.3 keep the header out of the uapi directory, because user_events is marked BROKEN.
_HEADERS = ("include/uapi/linux/user_events.h", "include/linux/user_events.h")


def compile_selftests(tree: Path, target: Path, flags: Sequence[str] = ()) -> list[Path]:
    """Compile the programs of ``tree`` with its own header into ``target``.

    Raises UserMistake if the tree has none, HostTrouble if they do not compile.
    """
    sources = [tree / DIRECTORY / f"{name}.c" for name in _names(tree / DIRECTORY / "Makefile")]
    header = next((tree / name for name in _HEADERS if (tree / name).is_file()), None)
    if not sources or not all(map(Path.is_file, sources)) or header is None:
        what = f"{tree} has no selftests of user_events"
        raise UserMistake(what, "they came with 5.18; name a kernel whose source is in the store")
    (target / "linux").mkdir()
    shutil.copyfile(header, target / "linux/user_events.h")
    programs = []
    for source in sources:
        program = target / source.stem
        command = [
            *("gcc", "-w", *flags, "-I", str(target), "-I", str((tree / DIRECTORY).parent)),
            *("-o", str(program), str(source), "-lrt", "-lpthread", "-lm"),
        ]
        try:
            output_of(command, _COMPILE_S)
        except ProgramFailed as error:
            hint = "install gcc and a static libc (libc6-dev)"
            raise HostTrouble(f"{source.name} does not compile: {error}", hint) from None
        programs.append(program)
    return programs


def _names(makefile: Path) -> list[str]:
    """The programs, in the order in which kselftest runs them."""
    if not makefile.is_file():
        return []
    found = re.search(r"(?m)^TEST_GEN_PROGS *[:+]?= *(.*)$", makefile.read_text())
    return found[1].split() if found else []
