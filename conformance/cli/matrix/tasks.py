"""What a worker does: build a kernel, or judge a shard of its cases.

Both are idempotent: a build ends in the store, a shard in a temporary directory that is sent back.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from conformance.cli.matrix.kernel_spec import KernelSpec
from conformance.results import journal, kernel_config, results_json
from conformance.results.journal import BEGINNING
from host.deadline import Deadline
from host.die_with_parent import __file__ as LEASH
from host.progress import silent
from host.temporary_directories import scratch
from host.text import one_line
from kernels.errors import KernelsError
from kernels.store.store import Store
from kernels.store.transfer import Damaged, Package, chunk, pack, receive
from kernels.trees.tree_snapshot import Snapshot
from kernels.trees.user_tree import note_snapshot, snapshot_of

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
    """A task that ended without a result; it may run again, elsewhere."""


class TaskHung(Exception):
    """A task that did not end in time, and was killed."""


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel in the store of a worker; the model has no ``package``.

    ``worker`` is the address of the builder, ``snapshot`` the content of a tree.
    """

    ids: tuple[str, ...]
    worker: str
    package: Package | None = None
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class Judged:
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
        built = Built(tuple(json.loads(output)), _own_address())
        if spec.is_model:
            return built
        store, snapshot = Store(), None
        if spec.tree is not None:
            snapshot = snapshot_of(spec.tree, spec.ref, store, silent)
        return replace(built, package=pack(store, spec.entry(words)), snapshot=snapshot)


def judge(
    built: Built, spec: KernelSpec, part: str, limit_s: float, holders: Sequence[str] = ()
) -> Judged:
    """Run a shard of a kernel; ``holders`` are the addresses of workers that may have it as well.

    Raises TaskFailed, TaskHung.
    """
    with _failing(), spec.options() as words, scratch() as directory:
        if built.package is not None:
            _receive(built, built.package, spec, words, holders)
        out = directory / "run"
        argv = [sys.executable, "-c", _MAIN, "run", *words, "--guests=1", "--quiet"]
        report = partial(_report, out / journal.NAME, spec.id, part)
        _, _, errors = _run([*argv, f"--shard={part}", f"--out={out}"], limit_s, report)
        files = {name: (out / name).read_bytes() for name in _FILES if (out / name).is_file()}
    if results_json.NAME not in files:
        raise TaskFailed(errors or "the run left no results")
    return Judged(_own_name(), _own_address(), files)


def _receive(
    built: Built, package: Package, spec: KernelSpec, words: Sequence[str], holders: Sequence[str]
) -> None:
    """Get the kernel from a worker that has it; without any, build it."""
    store = Store()
    if built.snapshot is not None and spec.tree is not None and not spec.tree.exists():
        note_snapshot(spec.tree, spec.ref, store, built.snapshot)
    entry = spec.entry(words)
    try:
        receive(package, store, entry, partial(fetch, (built.worker, *holders)))
    except (OSError, Damaged):
        build(spec)


def fetch(holders: Sequence[str], name: str, number: int) -> bytes:
    """A chunk from the first of these workers that sends it.  Raises OSError."""
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()
    others = [each for each in holders if each != worker.contact_address]
    for holder in others * _ATTEMPTS:
        with suppress(OSError, TimeoutError):
            asked = partial(_ask, worker, holder, name, number)
            return bytes(sync(worker.loop, asked, callback_timeout=_CHUNK_S))
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
    """Turn errors into one that can be sent."""
    try:
        yield
    except (KernelsError, OSError) as error:
        raise TaskFailed(str(error)) from None


def _own_name() -> str:
    from distributed import get_worker

    return str(get_worker().name)


def _own_address() -> str:
    from distributed import get_worker

    return str(get_worker().contact_address)


def _report(file: Path, kernel: str, part: str) -> None:
    """Send the number of cases that have ended, by the journal of the run."""
    from distributed import get_worker

    with suppress(OSError):
        done = file.read_bytes().count(_CASE)
        get_worker().log_event(TOPIC, {"kernel": kernel, "part": part, "done": done})


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
            output, errors = _communicate(child, deadline, while_it_runs)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    return child.returncode, output, one_line(errors.strip()[-_TAIL:])


def _communicate(
    child: subprocess.Popen[str], deadline: Deadline, while_it_runs: Callable[[], None]
) -> tuple[str, str]:
    """Output and errors of a program.  Raises TaskHung."""
    while not deadline.expired:
        with suppress(subprocess.TimeoutExpired):
            return child.communicate(timeout=min(_REPORT_S, deadline.remaining()))
        while_it_runs()
    raise TaskHung(f"it did not end in {deadline.seconds:.0f} s")
