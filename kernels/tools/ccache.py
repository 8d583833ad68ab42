"""Compile through ccache, if the host has it.

A link by the compiler's name comes first on PATH.  make's command lines, which kbuild compares,
stay the same, so installing ccache outdates no object.  Cache, limit and settings are the user's:
CCACHE_* pass through, CCACHE_DISABLE=1 turns it off.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from host.programs import ProgramFailed, output_of
from kernels.tools import child_process

# CC and HOSTCC of kbuild by default.
_COMPILER = "gcc"
_ASK_S = 10.0


def _settings() -> dict[str, str]:
    """The environment for ccache, including the places of its cache and settings."""
    own = [name for name in os.environ if name.startswith("CCACHE_")]
    return child_process.inherited([*own, "XDG_CACHE_HOME", "XDG_CONFIG_HOME"])


def in_front(directory: Path) -> dict[str, str]:
    """Variables that put ccache in front of the compiler; none if it cannot be used.

    `directory` is for the link by the compiler's name.
    """
    program = shutil.which("ccache")
    if program is None or not _usable(program):
        return {}
    directory.mkdir(parents=True, exist_ok=True)
    link = directory / _COMPILER
    if not link.is_symlink() or link.readlink() != Path(program):
        link.unlink(missing_ok=True)
        link.symlink_to(program)
    return {**_settings(), "PATH": f"{directory}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def _usable(program: str) -> bool:
    """Whether its cache is writable; otherwise every compilation would fail."""
    try:
        # As for make, or ccache would name another cache.
        environment = child_process.environment(**_settings())
        named = output_of([program, "--get-config", "cache_dir"], _ASK_S, env=environment)
    except ProgramFailed:
        return False
    cache = Path(named.strip())
    if not cache.is_absolute():
        return False
    existing = next(path for path in (cache, *cache.parents) if path.exists())
    return os.access(existing, os.W_OK | os.X_OK)
