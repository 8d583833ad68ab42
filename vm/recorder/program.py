"""Compile the recorder, which runs in the guest with the C library of the host."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from host.temporary_directories import scratch
from vm.guest.version import checksum_of
from vm.qemu.guest_files import compile_c

_SOURCE = Path(__file__).parent / "native"
_KEPT = Path(__file__).parent / "__pycache__"


def compile_recorder(program: Path) -> None:
    """Compile the recorder to a file, or copy what these sources were compiled to before.

    Raises NotCompiled, OSError.
    """
    kept = _KEPT / f"recorder-{checksum_of(str(_SOURCE)):08x}"
    with suppress(OSError):
        shutil.copy(kept, program)
        return
    compile_c("the recorder", _SOURCE, program)
    # In a read-only checkout it is compiled each time.
    with suppress(OSError):
        _keep(program, kept)


def _keep(program: Path, kept: Path) -> None:
    kept.parent.mkdir(exist_ok=True)
    for old in kept.parent.glob("recorder-*"):
        old.unlink(missing_ok=True)
    with scratch(kept.parent) as directory:
        new = directory / kept.name
        shutil.copy(program, new)
        new.replace(kept)
