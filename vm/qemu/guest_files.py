"""What the guest cannot make itself: its root is read-only, or made before."""

from __future__ import annotations

import compileall
import os
import subprocess
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
_COMPILING_SECONDS = 60.0


class NotCompiled(HostTrouble):
    """The part of the agent that is C could not be compiled."""


def compile_agent() -> None:
    """Compile what runs in the guest where that is not done.

    Without byte-code, in a checkout that we may not write to, a guest only boots slower.
    Raises NotCompiled.
    """
    for source in (_VM / "__init__.py", _VM / "wire.py", *(_VM / "guest").glob("*.py")):
        compileall.compile_file(source, quiet=2)
    _compile_native()


def _compile_native() -> None:
    """The library's time is made of its sources' checksum: it is theirs while that is so."""
    version = native_version()
    # Some file systems end in 2038.
    time = version >> 1
    if _LIBRARY.is_file() and int(_LIBRARY.stat().st_mtime) == time:
        return
    code = [str(source) for source in sorted((_VM / NATIVE).glob("*.c"))]
    try:
        _LIBRARY.parent.mkdir(exist_ok=True)
        with scratch(_LIBRARY.parent) as directory:
            made = directory / _LIBRARY.name
            subprocess.run(
                ["gcc", *_FLAGS, f"-DVERSION={version}u", "-o", str(made), *code],
                capture_output=True,
                text=True,
                check=True,
                timeout=_COMPILING_SECONDS,
            )
            os.utime(made, (time, time))
            made.replace(_LIBRARY)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        raise NotCompiled(
            f"{NATIVE} could not be compiled: {said}",
            hint="install gcc and libc6-dev (`uevt doctor` tells what is missing), and see that "
            f"{_LIBRARY.parent} can be written to",
        ) from None
