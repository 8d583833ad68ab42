"""Where runs are disturbed: directories of their own, so that whatever they leave is seen."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from kernels.store.store import Store

ROOT = Path(__file__).resolve().parents[1]
UEVT = (sys.executable, "-c", "import sys; from conformance.cli.main import main; sys.exit(main())")
# Every process of a run has it in its environment, whoever started it.
TAG = "UEVT_DISTURBED"
# What is killed by the kernel with its parent is gone within so many seconds.
_GONE_S = 20.0
_COPY_S = 600.0
# What a store has beside finished things, and a run must not leave there.
_LITTER = (".*", "*/.*", "*/*.new", "work/*", "snapshots/*.*/", "initramfs/tmp*", "lock.holder")


class Enclosure:
    """A build store and what is temporary: a run leaves things in there or nowhere."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cache, self.temporary, self.runtime = (
            directory / name for name in ("cache", "tmp", "runtime")
        )
        for each in (self.cache, self.temporary, self.runtime):
            each.mkdir(parents=True)
        self.tag = f"{os.getpid()}-{random.getrandbits(64):x}"

    def take_kernels(self) -> None:
        """Have the kernels of the user's store: by hard links, which take no space."""
        for name in ("names", "kernels", "modules"):
            copy = ["cp", "-al", str(Store().root / name), str(self.cache / name)]
            subprocess.run(copy, check=True, timeout=_COPY_S)

    def environment(self) -> dict[str, str]:
        """That of a run here, and of all that it starts."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        return {
            **kept,
            "UEVT_CACHE": str(self.cache),
            "TMPDIR": str(self.temporary),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PYTHONPATH": str(ROOT),
            TAG: self.tag,
        }

    def processes(self) -> dict[int, str]:
        """The processes of our runs, with their commands."""
        mark = f"{TAG}={self.tag}".encode()
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(entry.name)] = command.decode("utf-8", "replace")
            except OSError:
                continue
        return found

    def left(self) -> list[str]:
        """What is there that should not be, once nobody runs."""
        end = time.monotonic() + _GONE_S
        while (alive := self.processes()) and time.monotonic() < end:
            time.sleep(0.02)
        found = [f"process {command[:60]}" for command in alive.values()]
        for directory in (self.temporary, self.runtime):
            found += [f"{directory.name}/{each.name}" for each in directory.iterdir()]
        for pattern in _LITTER:
            found += [str(each.relative_to(self.cache)) for each in self.cache.glob(pattern)]
        return found
