"""Compile what runs in the guest on the host: byte-code, the native engine, and C programs."""

from __future__ import annotations

import compileall
import sys
from pathlib import Path

from host.programs import ProgramFailed, output_of
from host.temporary_directories import scratch
from vm.errors import HostTrouble
from vm.guest import LIBRARY
from vm.guest.version import NATIVE, native_version

_VM = Path(__file__).parents[1]
_LIBRARY = _VM / "guest" / LIBRARY
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra")
_OF_LIBRARY = ("-fno-strict-aliasing", "-shared", "-fPIC", "-fvisibility=hidden")
# On a running kernel that is an emulated guest, gcc is slow.
_COMPILE_S = 300.0


class NotCompiled(HostTrouble):
    """C code that runs in the guest could not be compiled."""


def compile_agent() -> None:
    """Compile what has changed.  Raises NotCompiled.

    Byte-code is optional: in a read-only checkout the guest only boots slower.
    """
    for source in (_VM / "__init__.py", _VM / "wire.py", *(_VM / "guest").glob("*.py")):
        compileall.compile_file(source, quiet=2)
    compile_native()


def compile_native() -> None:
    """Compile the native engine unless the library is that of its sources.  Raises NotCompiled."""
    version = native_version()
    if _LIBRARY.is_file() and version.to_bytes(4, sys.byteorder) in _LIBRARY.read_bytes():
        # engine_version: it outlives a copy that loses the times, and where there is no compiler.
        return
    try:
        _LIBRARY.parent.mkdir(exist_ok=True)
        with scratch(_LIBRARY.parent) as directory:
            library = directory / _LIBRARY.name
            compile_c(NATIVE, _VM / NATIVE, library, *_OF_LIBRARY, f"-DVERSION={version}u")
            library.replace(_LIBRARY)
    except OSError as error:
        raise NotCompiled(
            f"{NATIVE} could not be compiled: {error}", hint=f"make {_LIBRARY.parent} writable"
        ) from None


def compile_c(what: str, directory: Path, file: Path, *flags: str) -> None:
    """Compile the sources in a directory to a program or library.  Raises NotCompiled."""
    code = [str(source) for source in sorted(directory.glob("*.[cS]"))]
    try:
        output_of(["gcc", *_FLAGS, *flags, "-o", str(file), *code], _COMPILE_S)
    except ProgramFailed as error:
        raise NotCompiled(
            f"{what} could not be compiled: {error}",
            hint="install gcc and libc6-dev (`uevt doctor` lists what is missing)",
        ) from None
