"""Compile the recorder, which runs in the guest with the C library of the host."""

from __future__ import annotations

from pathlib import Path

from vm.qemu.guest_files import compile_c

_SOURCE = Path(__file__).parent / "native"


def compile_recorder(program: Path) -> None:
    """Compile the recorder to a file.  Raises NotCompiled."""
    compile_c("the recorder", _SOURCE, program)
