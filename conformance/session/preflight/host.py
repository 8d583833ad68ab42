"""Prepare the host: raise RLIMIT_NOFILE, and remove what killed runs and builds left."""

from __future__ import annotations

import resource
import tempfile
from contextlib import suppress
from pathlib import Path

from conformance.session.target.machine import saved_states
from host import files, temporary_directories
from kernels.errors import HostTrouble
from kernels.store.store import Store

# A worker has some 40 files open; more than 1024 are never needed.
_FEWEST = 64
_ENOUGH = 1024


def require_open_files() -> None:
    """Allow enough open files.  Raises HostTrouble."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft < _FEWEST:
        what = f"only {soft} files may be open at a time, and a run needs {_FEWEST}"
        raise HostTrouble(what, f"ulimit -n {_ENOUGH}")


def tidy() -> None:
    """Sweep the cache and the temporary directory; unreadable parts are skipped.

    Everything in use is locked by its process and stays.
    """
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
