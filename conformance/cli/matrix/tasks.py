"""What a worker does: build a kernel, or judge a shard of its cases.

Both are idempotent: a build ends in the store, a shard in a temporary directory that is sent back.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from conformance.results import kernel_config, results_json
from host.die_with_parent import __file__ as LEASH
from host.temporary_directories import scratch
from host.text import one_line
from kernels.request import Request
from kernels.store.store import Store
from kernels.store.transfer import Package, pack, unpack

MODEL = "model"
_ROOT = Path(__file__).parents[3]
_MAIN = "import sys; from conformance.cli.main import main; sys.exit(main())"
_FILES = (results_json.NAME, kernel_config.NAME, "console.log")
# Seconds to build a kernel on a slow machine, after others.
_BUILD_S = 3 * 3600.0
# Characters of an error that are sent back.
_TAIL = 2000


class TaskFailed(Exception):
    """A task that ended without a result; it may run again, elsewhere."""


class TaskHung(Exception):
    """A task that did not end in time, and was killed."""


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel in the store of its builder; the model has no ``package``."""

    ids: tuple[str, ...]
    package: Package | None


@dataclass(frozen=True, slots=True)
class Judged:
    """The files of a shard's run, by name; ``worker`` is the name of the worker."""

    worker: str
    files: dict[str, bytes]


def build(kernel: str, words: Sequence[str]) -> Built:
    """Build a kernel, or find it in the store, and list its cases.  Raises TaskFailed, TaskHung."""
    argv = [sys.executable, "-m", "conformance.cli.matrix.prepare"]
    code, output, errors = _run([*argv, f"--kernel={kernel}", *words], _BUILD_S)
    if code:
        raise TaskFailed(errors or f"exit code {code}")
    package = None if kernel == MODEL else pack(Store(), Request(kernel).entry())
    return Built(tuple(json.loads(output)), package)


def ids_of(built: Built) -> tuple[str, ...]:
    """The cases of a kernel, without its package."""
    return built.ids


def judge(
    built: Built, kernel: str, words: Sequence[str], part: str, limit_s: float, worker: str = ""
) -> Judged:
    """Run a shard of a kernel.

    Raises TaskFailed, TaskHung, and what unpacking the kernel raises.
    """
    if built.package is not None:
        unpack(built.package, Store(), Request(kernel).entry())
    with scratch() as directory:
        out = directory / "run"
        argv = [sys.executable, "-c", _MAIN, "run", f"--kernel={kernel}", *words]
        _, _, errors = _run([*argv, f"--shard={part}", f"--out={out}", "--quiet"], limit_s)
        files = {name: (out / name).read_bytes() for name in _FILES if (out / name).is_file()}
    if results_json.NAME not in files:
        raise TaskFailed(errors or "the run left no results")
    return Judged(worker or _worker_name(), files)


def _worker_name() -> str:
    from distributed import get_worker

    return str(get_worker().name)


def _run(argv: Sequence[str], limit_s: float) -> tuple[int, str, str]:
    """Run a program that dies with this process: exit code, output, end of the errors."""
    leash = [sys.executable, "-I", "-S", LEASH, str(os.getpid())]
    with subprocess.Popen(
        [*leash, *argv],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as child:
        try:
            output, errors = child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise TaskHung(f"it did not end in {limit_s:.0f} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    return child.returncode, output, one_line(errors.strip()[-_TAIL:])
