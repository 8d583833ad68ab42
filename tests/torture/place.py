"""Where disturbed runs are: directories of their own, so that whatever they leave is seen."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernels.store import Store

ROOT = Path(__file__).parents[2]
# Every process of a run has it in its environment, whoever started it.
TAG = "UEVT_TORTURED"
# What is killed by the kernel with its parent is gone within so many seconds.
_GONE_S = 5.0
_COPY_S = 600.0
# What a store has beside finished things, and a run must not leave there.
_LITTER = (".*", "*/.*", "*/*.new", "work/*", "snapshots/*.*/", "initramfs/tmp*", "lock.holder")


class Place:
    """A build store with the kernels of the real one, and places for temporary files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cache = directory / "cache"
        self.temporary = directory / "tmp"
        for each in (self.cache, self.temporary):
            each.mkdir(parents=True)
        self.tag = f"{os.getpid()}-{random.getrandbits(64):x}"

    def take_kernels(self) -> None:
        """Have the kernels of the user's store: by hard links, which take no space."""
        for name in ("names", "kernels", "modules"):
            copy = ["cp", "-al", str(Store().root / name), str(self.cache / name)]
            subprocess.run(copy, check=True, timeout=_COPY_S)

    def start(self, argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a Python of ours in a session of its own; its output is in `said`."""
        with self.said.open("wb") as said:
            return subprocess.Popen(
                [sys.executable, *argv],
                cwd=ROOT,
                env={**self._environment(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def close(self, *, keep: bool = False) -> None:
        """Remove everything, or ``keep`` what can be looked at."""
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)
            return
        for name in (self.cache, self.temporary):
            shutil.rmtree(name, ignore_errors=True)

    @property
    def said(self) -> Path:
        """What the last one that was started has said."""
        return self.directory / "said"

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        return {
            **kept,
            "UEVT_CACHE": str(self.cache),
            "TMPDIR": str(self.temporary),
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

    def left(self, out: Path | None = None) -> list[str]:
        """What is there and should not be, once nobody runs; ``out`` are the results of a run."""
        end = time.monotonic() + _GONE_S
        while (alive := self.processes()) and time.monotonic() < end:
            time.sleep(0.02)
        found = [f"process {command[:60]}" for command in alive.values()]
        found += [f"{each}" for each in self.temporary.iterdir()]
        for pattern in _LITTER:
            found += [str(each.relative_to(self.cache)) for each in self.cache.glob(pattern)]
        if out is not None:
            # Consoles are joined, and files appear whole.
            found += [str(each) for each in (*out.glob("gw*"), *out.glob(".*"))]
        return found
