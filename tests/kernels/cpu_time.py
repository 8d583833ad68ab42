"""CPU time of a process, which tests that run meanwhile do not change."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from kernels.store.store import Store


def run_measured(script: str, store: Store) -> tuple[str, float]:
    """Output and CPU time, in seconds, of a Python script that uses a store."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "UEVT_CACHE": str(store.root)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return output.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
