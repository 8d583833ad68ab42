"""A copy of the running Python that starts wherever it is: with its own loader and libraries."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from conformance.cli.install.modules import Module
from host import programs
from vm.errors import HostTrouble
from vm.qemu import elf
from vm.qemu.root_archive import interpreter

FILES = Path(__file__).parent / "files"
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
HINT = "run it with another Python, of glibc 2.33 or later"
_RUN_S = 300.0
#: A line of `ld.so --list`: NAME => PATH (ADDRESS).
_LIBRARY = re.compile(r"^\s+(\S+) => (/\S+) \(", re.MULTILINE)


def copy_interpreter(directory: Path, modules: Iterable[Module], others: Iterable[Path]) -> None:
    """Copy Python, these modules of the standard library, and the libraries of all and `others`.

    Raises HostTrouble, OSError.
    """
    binary, library = directory / "bin", directory / "lib"
    standard = library / VERSION
    native = standard / "lib-dynload"
    for each in (binary, native):
        each.mkdir(parents=True)
    python = interpreter()
    loader = elf.loader_of(python)
    if loader is None:
        raise HostTrouble(f"{python} is no dynamic 64-bit program", hint=HINT)
    files = [python, *others]
    for module in modules:
        if module.is_native:
            files.append(module.file)
            _copy_loaded(module.file, native / module.file.name)
        else:
            target = standard / module.place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(module.file, target)
    for name, file in _libraries(loader, files).items():
        _copy_loaded(file, library / name)
    _copy_loaded(loader, library / "loader", executable=True)
    _copy_loaded(python, binary / VERSION, executable=True)
    script = (FILES / "python3").read_text().replace("PYTHON", VERSION)
    (binary / "python3").write_text(script)
    (binary / "python3").chmod(0o755)


def _libraries(loader: Path, files: Iterable[Path]) -> dict[str, Path]:
    """The shared libraries of programs and libraries: the name by which they are loaded to file."""
    found: dict[str, Path] = {}
    for file in files:
        listed = output_of([loader, "--list", file], f"libraries of {file}")
        found |= {name: Path(path) for name, path in _LIBRARY.findall(listed)}
    return {name: path for name, path in found.items() if path.resolve() != loader.resolve()}


def output_of(
    command: Sequence[str | Path],
    what: str,
    hint: str = HINT,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> str:
    """The standard output of a program.  Raises HostTrouble, with ``what`` was to be made of it."""
    try:
        return programs.output_of(command, _RUN_S, env=env, cwd=cwd)
    except programs.ProgramFailed as error:
        raise HostTrouble(f"{what}: {error}", hint=hint) from None


def _copy_loaded(source: Path, target: Path, *, executable: bool = False) -> None:
    """Copy an ELF file without symbols and debugging information."""
    target.write_bytes(elf.loaded(source))
    target.chmod(0o755 if executable else 0o644)
