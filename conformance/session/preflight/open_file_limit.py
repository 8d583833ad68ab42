"""Raise RLIMIT_NOFILE before the run."""

from __future__ import annotations

import resource

from kernels.errors import HostTrouble

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
