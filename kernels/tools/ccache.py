"""ccache in front of the compiler, where this machine has it.

It stands in by the compiler's name, first on PATH: make's command lines, which kbuild compares,
are the same with it and without, so that installing it makes no object outdated.  The cache is
the user's own, with the limit and the settings that he gave it (CCACHE_* pass through, so
CCACHE_DISABLE=1 turns it off); a store shared read-only needs none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from kernels.tools import child_process

# Programs that kbuild compiles with: CC and HOSTCC by their default names.
_COMPILERS = ("gcc",)
_ASKING_S = 10.0


def settings() -> dict[str, str]:
    """What ccache is told by its environment: also where its cache and its settings are."""
    own = [name for name in os.environ if name.startswith("CCACHE_")]
    return child_process.inherited([*own, "XDG_CACHE_HOME", "XDG_CONFIG_HOME"])


def in_front(directory: Path) -> dict[str, str]:
    """Variables that put ccache in front of the compiler; none where it cannot be used.

    `directory` is for links by the compiler's name.
    """
    program = shutil.which("ccache")
    if program is None or not _usable(program):
        return {}
    directory.mkdir(parents=True, exist_ok=True)
    for name in _COMPILERS:
        link = directory / name
        if not link.is_symlink() or link.readlink() != Path(program):
            link.unlink(missing_ok=True)
            link.symlink_to(program)
    return {**settings(), "PATH": f"{directory}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def _usable(program: str) -> bool:
    """Whether its cache can be written: without one it would fail every compilation."""
    try:
        said = subprocess.run(
            [program, "--get-config", "cache_dir"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_ASKING_S,
            # As make's children will be told, or it would answer for another cache.
            env=child_process.environment(**settings()),
        )
    except (OSError, subprocess.SubprocessError):
        return False
    cache = Path(said.stdout.strip())
    if not cache.is_absolute():
        return False
    there = next(path for path in (cache, *cache.parents) if path.exists())
    return os.access(there, os.W_OK | os.X_OK)
