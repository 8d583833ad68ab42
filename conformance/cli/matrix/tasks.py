"""What a worker does: build a kernel, or judge a shard of its cases.

Both are idempotent: a build ends in the store, a shard in a temporary directory that is sent back.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from conformance.cli.matrix.kernel_spec import KernelSpec
from conformance.results import journal, kernel_config, results_json
from conformance.results.journal import BEGINNING
from host.deadline import Deadline
from host.die_with_parent import __file__ as LEASH
from host.temporary_directories import scratch
from host.text import one_line
from kernels.errors import KernelsError
from kernels.store.store import Store
from kernels.store.transfer import Damaged, Package, chunk, pack, receive

_ROOT = Path(__file__).parents[3]
_MAIN = "import sys; from conformance.cli.main import main; sys.exit(main())"
_FILES = (results_json.NAME, kernel_config.NAME, "console.log")
# Seconds to build a kernel on a slow machine, after others.
_BUILD_S = 3 * 3600.0
# Characters of an error that are sent back.
_TAIL = 2000
# Seconds between messages about a shard that runs.
_REPORT_S = 2.0
TOPIC = "uevt"
"""The topic of those messages: kernel, part, and number of cases done."""
# A journal line of a case that has ended.
_CASE = BEGINNING + b'case"'
# Seconds for a chunk, and how often each worker that has it is asked.
_CHUNK_S = 30.0
_ATTEMPTS = 3


class TaskFailed(Exception):
    """A task that ended without a result; it may run again, at another worker.

    ``worker`` is the address of the one that it failed at, if that is to blame.
    """

    def __init__(self, why: str, worker: str = "") -> None:
        super().__init__(why, worker)
        self.worker = worker

    def __str__(self) -> str:
        return str(self.args[0])


class TaskHung(Exception):
    """A task that did not end in time, and was killed."""


class Built(Struct, frozen=True):
    """A kernel in the store of the worker with this address; the model has no ``package``."""

    ids: tuple[str, ...]
    worker: str
    package: Package | None = None


class Judged(Struct, frozen=True):
    """The files of a shard's run, by name; the name and the address of the worker."""

    name: str
    worker: str
    files: dict[str, bytes]


def build(spec: KernelSpec) -> Built:
    """Build a kernel, or find it in the store, and list its cases.  Raises TaskFailed, TaskHung."""
    argv = [sys.executable, "-m", "conformance.cli.matrix.prepare"]
    with _failing(), spec.options() as words:
        code, output, errors = _run([*argv, *words], _BUILD_S)
        if code:
            raise TaskFailed(errors or f"exit code {code}")
        package = None if spec.entry is None else pack(Store(), spec.entry)
    return Built(tuple(json.loads(output)), _worker().contact_address, package)


def judge(
    built: Built, spec: KernelSpec, part: str, limit_s: float, holders: Sequence[str] = ()
) -> Judged:
    """Run a shard of a kernel; ``holders`` are the addresses of workers that may have it as well.

    Raises TaskFailed, TaskHung.
    """
    with _failing(), spec.options() as words, scratch() as directory:
        if built.package is not None and spec.entry is not None:
            holders = [built.worker, *holders]
            try:
                receive(built.package, Store(), spec.entry, partial(_fetch, holders))
            except (OSError, Damaged):
                # The workers that had it are gone.
                build(spec)
        out = directory / "run"
        argv = [sys.executable, "-c", _MAIN, "run", *words, "--guests=1", "--quiet"]
        report = partial(_report, out / journal.NAME, spec.id, part)
        _, _, errors = _run([*argv, f"--shard={part}", f"--out={out}"], limit_s, report)
        files = {name: (out / name).read_bytes() for name in _FILES if (out / name).is_file()}
    if results_json.NAME not in files:
        raise TaskFailed(errors or "the run left no results")
    return Judged(str(_worker().name), _worker().contact_address, files)


def _fetch(holders: list[str], name: str, number: int) -> bytes:
    """A chunk from the first of these workers that sends it, in an order that changes.

    Raises OSError.
    """
    from distributed.utils import sync

    worker = _worker()
    for _ in range(_ATTEMPTS * len(holders)):
        if holders[0] != worker.contact_address:
            with suppress(OSError):
                asked = partial(_ask, worker, holders[0], name, number)
                return bytes(sync(worker.loop, asked, callback_timeout=_CHUNK_S))
        holders.append(holders.pop(0))
    raise OSError(f"no worker sends {name}")


async def _ask(worker: Any, holder: str, name: str, number: int) -> bytes:
    """Let another worker read a chunk, beside its tasks.  Raises OSError."""
    from distributed.protocol.pickle import dumps

    answer = await worker.rpc(holder).run(function=dumps(_read), args=dumps((name, number)))
    if answer["status"] != "OK":
        raise OSError(f"{holder} cannot read {name}")
    return bytes(answer["result"])


def _read(name: str, number: int) -> bytes:
    return chunk(Store(), name, number)


@contextmanager
def _failing() -> Iterator[None]:
    """Turn errors into one that can be sent; it names the machine, which has the logs."""
    try:
        yield
    except (KernelsError, OSError, TaskFailed) as error:
        if isinstance(error, TaskFailed) and error.worker:
            # A build on behalf of a shard.
            raise
        raise TaskFailed(f"{platform.node()}: {error}", _worker().contact_address) from None


def _worker() -> Any:
    from distributed import get_worker

    return get_worker()


def _report(file: Path, kernel: str, part: str) -> None:
    """Send the number of cases that have ended, by the journal of the run."""
    with suppress(OSError):
        done = file.read_bytes().count(_CASE)
        _worker().log_event(TOPIC, {"kernel": kernel, "part": part, "done": done})


def _run(
    argv: Sequence[str], limit_s: float, while_it_runs: Callable[[], None] = lambda: None
) -> tuple[int, str, str]:
    """Run a program that dies with this process: exit code, output, end of the errors."""
    deadline = Deadline(limit_s, "the task")
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
            while not deadline.expired:
                with suppress(subprocess.TimeoutExpired):
                    output, errors = child.communicate(timeout=_REPORT_S)
                    return child.returncode, output, one_line(errors.strip()[-_TAIL:])
                while_it_runs()
            raise TaskHung(f"{platform.node()}: it did not end in {limit_s:.0f} s")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
