"""What a run needs of the process's limits, seen to before it begins."""

from __future__ import annotations

import resource

from kernels.errors import HostTrouble

# A process with a guest has some 40 files open; beyond many, none of ours has any use for more.
_FEWEST = 64
_ENOUGH = 1024


def require_open_files() -> None:
    """See that enough files can be open at a time.  Raises HostTrouble."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft < _FEWEST:
        what = f"only {soft} files may be open at a time, and a run needs {_FEWEST}"
        raise HostTrouble(what, f"ulimit -n {_ENOUGH}")
