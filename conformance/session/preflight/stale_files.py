"""Remove what killed runs and builds left.

Everything in use is locked by its process and stays.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

from conformance.session.target.machine import saved_states
from host import files, temporary_directories
from kernels.store.store import Store


def tidy() -> None:
    """Sweep the cache and the temporary directory; unreadable parts are skipped."""
    store = Store()
    with suppress(OSError):
        store.tidy()
    with suppress(OSError):
        saved_states().clean_up()
    for directory in (
        Path(tempfile.gettempdir()),
        store.root,
        store.root / "roots",
        store.initramfs,
    ):
        with suppress(OSError):
            temporary_directories.sweep(directory)
    for directory in (store.root, store.root / "roots", store.initramfs, store.root / "durations"):
        with suppress(OSError):
            files.sweep(directory)
