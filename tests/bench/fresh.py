"""`python -m tests.bench.fresh`: from `git clone` to the verdict, with an empty build store.

The reference is `vng --build` of the same source.  Host packages are there already.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.bench.guests import ROOT, tree_of
from tests.bench.measure import Pair, table

_LIMIT_S = 7200.0


class Cost(NamedTuple):
    """Duration and CPU time in seconds."""

    seconds: float
    cpu_s: float


def cost(words: list[str], directory: Path, environment: Mapping[str, str]) -> Cost:
    """Run a command with more of an environment; raises CalledProcessError if it fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        words, cwd=directory, env={**os.environ, **environment}, timeout=_LIMIT_S, check=True
    )
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return Cost(seconds, user + system)


def main() -> None:
    """Measure once, and print the table."""
    with tempfile.TemporaryDirectory(prefix="uevt-fresh-") as name:
        directory = Path(name)
        script = f"git clone --quiet {ROOT} clone && make -C clone conformance"
        empty = {"UEVT_CACHE": str(directory / "cache"), "PIP_NO_CACHE_DIR": "1"}
        ours = cost(["sh", "-c", script], directory, empty)
        source = directory / "source"
        shutil.copytree(tree_of("6.12"), source, symlinks=True)
        scripts = Path(sys.executable).parent
        path = {"PATH": f"{scripts}:{os.environ['PATH']}"}
        sys.stderr.write(f"clone to verdict: {ours}\n")
        theirs = cost([str(scripts / "vng"), "--build"], source, path)
    pairs = [
        Pair(f"clone to verdict{what}", f"`vng --build`{what}", "s", (mine,), (other,))
        for what, mine, other in zip(("", ": CPU time"), ours, theirs, strict=True)
    ]
    sys.stdout.write(table(pairs))


if __name__ == "__main__":
    main()
