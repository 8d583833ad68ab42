"""Compile the guest's half of the agent on the host: byte-code and the native engine."""

from __future__ import annotations

import compileall
import subprocess
import sys
from pathlib import Path

from host.temporary_directories import scratch
from vm.errors import HostTrouble
from vm.guest import LIBRARY
from vm.guest.version import NATIVE, native_version

_VM = Path(__file__).parents[1]
_LIBRARY = _VM / "guest" / LIBRARY
_FLAGS = (
    *("-std=gnu11", "-O2", "-fno-strict-aliasing", "-Wall", "-Wextra"),
    *("-shared", "-fPIC", "-fvisibility=hidden"),
)
_COMPILE_S = 60.0


class NotCompiled(HostTrouble):
    """The native engine of the agent could not be compiled."""


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
    code = [str(source) for source in sorted((_VM / NATIVE).glob("*.c"))]
    try:
        _LIBRARY.parent.mkdir(exist_ok=True)
        with scratch(_LIBRARY.parent) as directory:
            library = directory / _LIBRARY.name
            subprocess.run(
                ["gcc", *_FLAGS, f"-DVERSION={version}u", "-o", str(library), *code],
                capture_output=True,
                text=True,
                check=True,
                timeout=_COMPILE_S,
            )
            library.replace(_LIBRARY)
    except (OSError, subprocess.SubprocessError) as error:
        output = (getattr(error, "stderr", None) or str(error)).strip()
        raise NotCompiled(
            f"{NATIVE} could not be compiled: {output}",
            hint="install gcc and libc6-dev (`uevt doctor` lists what is missing), and check that "
            f"{_LIBRARY.parent} is writable",
        ) from None
