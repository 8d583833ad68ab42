"""A build whose processes are killed: the next one makes what the first would have made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

from kernels.build.build import ensure
from kernels.store.store import Store
from tests.faults import Fault
from tests.kernels.fake_make import ENTRY, FakeMake, keep_source
from tests.torture.place import Place
from tests.torture.runs import Report

_LIMIT_S = 60.0
# Seconds that the fake make takes, so that there is something to kill.
_TAKES_S = 0.5


def disturbed_build(fault: Fault, place: Place, random: Random) -> Report:
    """Kill a build at a moment by chance, build again, and look at what is in the store."""
    report = Report((fault,))
    root = place.directory / f"build-{random.getrandbits(32):x}"
    prepare(root)
    began = time.monotonic()
    with place.start(["-m", "tests.torture.builds", str(root)], {}) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(random.uniform(0.2, 2.5))
        # The process itself, or whoever of its children runs: make, a shell, a compiler.
        running = [pid for pid in place.processes() if _exists(pid)]
        if running:
            with suppress(ProcessLookupError):
                os.kill(random.choice(running), signal.SIGKILL)
        process.wait(_LIMIT_S)
    report.leaked += place.left()
    with place.start(["-m", "tests.torture.builds", str(root)], {}) as process:
        code = process.wait(_LIMIT_S)
    report.seconds = time.monotonic() - began
    if code:
        said = place.said.read_text(errors="replace").strip()[-300:]
        report.lost.append(f"building again ended with {code}: {said}")
    elif (built := Store(root / "store").lookup(ENTRY)) is None:
        report.lost.append("the kernel is not in the store")
    elif built.image.read_text() != "image\n":
        report.blamed.append("the image is not what make makes")
    report.leaked += place.left()
    work = root / "store" / "work"
    report.leaked += [str(each) for each in work.glob("*")]
    if report.seconds > fault.allowance_s:
        report.late.append(f"{report.seconds:.1f} s")
    return report


def prepare(root: Path) -> None:
    """A store with a source tree, and a make that takes its time."""
    keep_source(Store(root / "store"))
    fake = FakeMake(root / "make")
    program = fake.directory / "make"
    program.write_text(program.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\nsleep {_TAKES_S}\n"))


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    os.environ["PATH"] = f"{directory / 'make'}:{os.environ['PATH']}"
    ensure(ENTRY, Store(directory / "store"))
