"""Compile the recorder, which runs in the guest with the C library of the host."""

from __future__ import annotations

import subprocess
from pathlib import Path

from vm.errors import HostTrouble

_SOURCE = Path(__file__).parent / "native"
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra")
_COMPILE_S = 60.0


class NotCompiled(HostTrouble):
    """The recorder could not be compiled."""


def compile_recorder(program: Path) -> None:
    """Compile the recorder to a file.  Raises NotCompiled."""
    code = [str(source) for source in sorted(_SOURCE.glob("*.c"))]
    try:
        subprocess.run(
            ["gcc", *_FLAGS, "-o", str(program), *code],
            capture_output=True,
            text=True,
            check=True,
            timeout=_COMPILE_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        output = (getattr(error, "stderr", None) or str(error)).strip()
        raise NotCompiled(
            f"the recorder could not be compiled: {output}",
            hint="install gcc and libc6-dev (`uevt doctor` lists what is missing)",
        ) from None
