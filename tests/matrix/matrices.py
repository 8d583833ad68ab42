"""Matrices and workers for tests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.cli.matrix.kernel_spec import KernelSpec, specified
from conformance.session.options import apply_defaults, default_options
from host.deadline import Deadline
from tests.enclosure import ROOT, Enclosure, Runs, tied

if TYPE_CHECKING:
    from distributed import Client

EXPRESSION = "status. or dated.b"
CASES = 17
# A worker that is stopped is given up after this time, which is short for a test.
QUICK = """\
import sys
import conformance.cli.matrix.cluster
conformance.cli.matrix.cluster.SILENT_S = 5
from conformance.cli.main import main
sys.exit(main())
"""
SECONDS = 300.0


def start(place: Enclosure, *words: str) -> subprocess.Popen[str]:
    """Start a command of `uevt` in a session of its own."""
    return subprocess.Popen(
        [*tied(), sys.executable, "-c", QUICK, *words],
        cwd=ROOT,
        env=place.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    """The output of a command that ends with exit code 0."""
    output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    return output


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    """Wait for a line that has a pattern."""
    assert process.stdout is not None
    assert any(re.search(text, line) for line in process.stdout), f"it ended without {text}"


def kernel_spec(kernel: str, keyword: str, **others: Any) -> KernelSpec:
    """A kernel with options of `uevt run`."""
    options = default_options(kernel=kernel, keyword=keyword, **others)
    apply_defaults(options)
    return specified(options)


def workers(place: Runs) -> list[int]:
    return [pid for pid, command in place.processes().items() if "spawn_main" in command]


def matrix_words(out: Path, kernels: Sequence[str]) -> list[str]:
    return ["matrix", *kernels, f"--out={out}", f"-k={EXPRESSION}", "--shards=3", "--workers=3"]


@contextmanager
def dask_scheduler(
    place: Enclosure, *words: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A scheduler of dask without our command, and its address."""
    file = place.directory / "scheduler.json"
    process = _dask(
        place,
        *("scheduler", "--host=127.0.0.1", "--port=0", f"--scheduler-file={file}", *words),
        **environment,
    )
    try:
        deadline = Deadline(60.0, "the scheduler")
        while not file.exists() or not file.stat().st_size:
            deadline.pause(0.1)
        yield process, json.loads(file.read_text())["address"]
    finally:
        process.terminate()
        process.wait(SECONDS)


@contextmanager
def offering(*resources: dict[str, float]) -> Iterator[Client]:
    """A client of workers with these resources, in this process."""
    from distributed import Client, Scheduler, SpecCluster, Worker

    workers = {
        number: {"cls": Worker, "options": {"nthreads": 2, "resources": each}}
        for number, each in enumerate(resources)
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "host": "127.0.0.1"}}
    with SpecCluster(workers, scheduler) as cluster, Client(cluster) as client:
        yield client


def dask_worker(
    place: Enclosure, scheduler: str, name: str, resources: dict[str, float], *words: str
) -> subprocess.Popen[bytes]:
    """Start a worker without our command."""
    offer = " ".join(f"{resource}={value:g}" for resource, value in resources.items())
    at = f"--local-directory={place.directory / 'dask'}"
    given = (f"--name={name}", "--no-nanny", "--nthreads=1", f"--resources={offer}", at, *words)
    return _dask(place, "worker", scheduler, *given)


def _dask(place: Enclosure, *words: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*tied(), sys.executable, "-m", "dask", *words, "--no-dashboard"],
        cwd=place.directory,
        env={**place.environment(), "TMPDIR": str(place.directory), **environment},
        stderr=subprocess.DEVNULL,
    )
