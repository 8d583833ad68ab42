"""A place for disturbed runs: directories of their own, so that leftovers are found."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from host.die_with_parent import __file__ as DIE_WITH_PARENT
from kernels.store.store import Store

ROOT = Path(__file__).resolve().parents[1]
UEVT = (sys.executable, "-c", "import sys; from conformance.cli.main import main; sys.exit(main())")
# In the environment of every process of a run.
TAG = "UEVT_DISTURBED"
# The kernel kills processes with their parent within this time.
_GONE_S = 20.0
_COPY_S = 600.0
_RUN_S = 600.0
# What a run must not leave in a build store.
_LITTER = (".*", "*/.*", "*/*.new", "work/*", "snapshots/*.*/", "initramfs/tmp*", "lock.holder")


def tied() -> tuple[str, ...]:
    """The words before a command that ends with this process, however it ends."""
    return (sys.executable, "-I", "-S", DIE_WITH_PARENT, str(os.getpid()))


class Enclosure:
    """A build store and temporary directories; a run leaves files there or nowhere."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cache, self.temporary, self.runtime = (
            directory / name for name in ("cache", "tmp", "runtime")
        )
        for each in (self.cache, self.temporary, self.runtime):
            each.mkdir(parents=True)
        self.tag = f"{os.getpid()}-{random.getrandbits(64):x}"

    def take_kernels(self) -> None:
        """Hard-link the kernels of the user's store."""
        for name in ("names", "kernels", "modules"):
            copy = ["cp", "-al", str(Store().root / name), str(self.cache / name)]
            subprocess.run(copy, check=True, timeout=_COPY_S)

    def environment(self) -> dict[str, str]:
        """The environment of a run."""
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
        """The processes of the runs here, with their command lines."""
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
        """Processes and files that a run should not have left."""
        end = time.monotonic() + _GONE_S
        while (alive := self.processes()) and time.monotonic() < end:
            time.sleep(0.02)
        found = [f"process {command[:60]}" for command in alive.values()]
        for directory in (self.temporary, self.runtime):
            found += [f"{directory.name}/{each.name}" for each in directory.iterdir()]
        for pattern in _LITTER:
            found += [str(each.relative_to(self.cache)) for each in self.cache.glob(pattern)]
        return found


class Runs(Enclosure):
    """Runs of `uevt run` that may be killed."""

    def __init__(self, directory: Path, kernel: str) -> None:
        super().__init__(directory)
        if kernel != "model":
            self.take_kernels()

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a run in a session of its own."""
        return subprocess.Popen(
            [*tied(), *UEVT, "run", *arguments],
            cwd=ROOT,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run to the end: exit code and standard error."""
        with self.start(*arguments) as process:
            _, errors = process.communicate(timeout=_RUN_S)
        return process.returncode, errors.decode()


def comparable(directory: Path) -> dict[str, Any]:
    """The results of a run without what differs between any two runs."""
    results = json.loads((directory / "results.json").read_text())
    cases = {}
    for case in results["cases"]:
        assert case["id"] not in cases, f"{case['id']} has two results"
        cases[case["id"]] = {**case, "duration_s": 0, "rerun": None}
        for name in ("model", "kernel", "console", "steps"):
            # Names, addresses and times differ.
            case["evidence"][name] = ""
    summary = {name: value for name, value in results["summary"].items() if name != "duration_s"}
    return {"kernel": results["kernel"], "cases": cases, "summary": summary}
