"""Measured operations: guests and runs of uevt, and virtme-ng with the same kernel."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import vm.snapshots.files
from conformance.abi.profile import profile_for
from conformance.client.lockstep import Lockstep
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.results import journal
from conformance.runner.guest_executor import GuestExecutor
from conformance.runner.guest_setup import ACTOR, GuestSetup
from conformance.runner.patience import Patience
from conformance.runner.process_pool import ProcessPool
from conformance.session.selftests.programs import compile_selftests
from conformance.session.target.target import Target
from conformance.session.worker.machine_guest import MachineGuest
from host.progress import silent
from kernels.catalog.catalog import load_catalog
from kernels.sources.unpacked import SourceTrees
from kernels.store.store import Store
from vm.machine import Machine

ROOT = Path(__file__).parents[2]
UEVT = str(Path(sys.executable).parent / "uevt")
_VNG_S = 300.0
_RUN_S = 600.0
_FULL_RUN_S = 7200.0
# Signs that the script has ended, from virtme-ng and from the script: which one appears depends on
# udev.
_DONE = ("script exited with code", "uevt ran 42")
_PRINT_DONE = "echo uevt ran $((40 + 2))"
_CALLS = 400
_GETPID = 39


def vng(image: Path, command: str, writable: Path | None = None) -> float:
    """Duration of `vng … -- command` on an image, in seconds.

    `writable` is a host directory that the guest may write.  Raises RuntimeError if the command
    did not run.
    """
    scripts = Path(sys.executable).parent
    options = [] if writable is None else [f"--rwdir={writable}"]
    began = time.perf_counter()
    done = subprocess.run(
        [
            *(scripts / "vng", "--disable-kvm", "--force-9p", "--verbose", "-r", image),
            *(*options, "--", f"{command}; {_PRINT_DONE}"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"},
        text=True,
        errors="replace",
        timeout=_VNG_S,
        check=False,
    )
    took = time.perf_counter() - began
    # Without udev the exit status is meaningless.
    if not any(sign in done.stdout for sign in _DONE):
        raise RuntimeError(f"vng did not run {command}: {done.stdout[-2000:]}")
    return took


@contextmanager
def ready_guest(target: Target) -> Iterator[MachineGuest]:
    """A guest that answers."""
    with tempfile.TemporaryDirectory() as directory:
        guest = MachineGuest(target, Path(directory))
        try:
            guest.wait_ready()
            yield guest
        finally:
            guest.close()


def first_answer(target: Target) -> float:
    """Seconds until a new guest gives its first answer."""
    # Include the verification of the snapshot.
    vm.snapshots.files._digests.clear()
    began = time.perf_counter()
    with ready_guest(target) as guest:
        guest.call("", [["ping"]])
        return time.perf_counter() - began


def resident(target: Target) -> float:
    """Resident memory (VmRSS) of QEMU after the first answer, in MB."""
    with ready_guest(target) as guest:
        guest.call("", [["ping"]])
        machine: Machine = guest._machine
        status = Path(f"/proc/{machine.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1000


@contextmanager
def lockstep_guest(
    target: Target, *, ahead: bool = False
) -> Iterator[tuple[UserEvents, Callable[[], object]]]:
    """A program in lock step on a guest, and a call of getpid(2) that bypasses the model.

    ``ahead``: see Lockstep.
    """
    with ready_guest(target) as guest:
        GuestSetup(guest)
        model = Model(profile_for(target.abi, base=target.release))
        executor = GuestExecutor(guest, ProcessPool(guest, standing=ACTOR), Patience())

        def getpid() -> object:
            process = next(iter(executor._processes.values()))
            return guest.call(process.name, [["sys", _GETPID, [], None]])

        yield UserEvents(Lockstep(model, executor, ahead=ahead)), getpid


def per_call(call: Callable[[], object]) -> float:
    """Median duration of a call in milliseconds."""
    times = []
    for _ in range(_CALLS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def amortised(call: Callable[[], object], finish: Callable[[], object]) -> float:
    """Mean duration of a call in milliseconds, with what finishes them all."""
    began = time.perf_counter()
    for _ in range(_CALLS):
        call()
    finish()
    return (time.perf_counter() - began) / _CALLS * 1e3


@contextmanager
def finished_run(*words: str) -> Iterator[tuple[int, Path]]:
    """The exit code of `uevt run` with these words, and the directory of its results."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        command = [UEVT, "run", *words, "--out", str(out)]
        yield subprocess.run(command, cwd=ROOT, timeout=_FULL_RUN_S, check=False).returncode, out


def tree_of(kernel: str) -> Path:
    """The source tree that a kernel of the catalog was built from."""
    tree = SourceTrees(Store(), silent).stored(load_catalog().find(kernel))
    assert tree is not None, f"uevt kernels build {kernel}"
    return tree


def run(*words: str) -> tuple[float, float]:
    """Seconds until `uevt run` with these words has its first result, and until it ends.

    Raises RuntimeError unless the verdict is PASS.
    """
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        command = [UEVT, "run", *words, "--out", str(out)]
        began = time.perf_counter()
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            first = None
            while process.poll() is None and time.perf_counter() - began < _RUN_S:
                if first is None and _has_result(out / journal.NAME):
                    first = time.perf_counter() - began
                time.sleep(0.005)
            process.kill()
        took = time.perf_counter() - began
        if process.returncode != 0 or first is None:
            raise RuntimeError(f"uevt run {' '.join(words)} ended with {process.returncode}")
    return first, took


def _has_result(file: Path) -> bool:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return False
    return any(json.loads(line).get("event") == "case" for line in lines if line.endswith("}"))


@contextmanager
def selftests(tree: Path) -> Iterator[str]:
    """Compile upstream's selftests of user_events and return the command that runs them."""
    with tempfile.TemporaryDirectory(dir=ROOT) as directory:
        yield "; ".join(map(str, compile_selftests(tree, Path(directory))))
