"""`ensure` builds a kernel once, in one process, and never publishes half of it."""

from __future__ import annotations

import os
import signal
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from msgspec.structs import replace

from host.progress import Step
from kernels.build.build import ensure
from kernels.store.store import Store
from tests.kernels.fake_make import ENTRY, FakeMake
from tests.processes import wait_for


def build_in_a_process(root: Path) -> None:
    """Main function of child processes: build in that store, and log the steps."""
    with (root.parent / f"steps-{os.getpid()}").open("a", buffering=1) as log:
        ensure(ENTRY, Store(root), progress=lambda step: print(step, file=log))


def started(store: Store) -> BaseProcess:
    builder = get_context("spawn").Process(
        target=build_in_a_process, args=(store.root,), daemon=True
    )
    builder.start()
    return builder


def test_kernel_is_built_once(store: Store, make: FakeMake) -> None:
    first = ensure(ENTRY, store)
    steps: list[Step] = []
    assert ensure(ENTRY, store, progress=steps.append) == first
    assert steps == []
    assert make.targets.count("bzImage") == 1


def test_refresh_resolves_the_revision_again(store: Store, make: FakeMake) -> None:
    make.apt.offer("host", "9.9.3-1")
    ensure(ENTRY, store)
    assert ensure(ENTRY, store, refresh=True).revision == "9.9.3-1"
    make.apt.offer("host", "9.9.4-1")
    assert ensure(ENTRY, store).revision == "9.9.3-1"
    assert make.targets.count("bzImage") == 1
    assert ensure(ENTRY, store, refresh=True).revision == "9.9.4-1"
    assert ensure(ENTRY, store).revision == "9.9.4-1"
    assert make.targets.count("bzImage") == 2


def test_changed_configuration_keeps_the_revision(store: Store, make: FakeMake) -> None:
    ensure(ENTRY, store)
    make.apt.offer("host", "9.9.4-1")
    changed = replace(ENTRY, wanted=("CONFIG_A=y", "CONFIG_C=y"))
    assert ensure(changed, store).revision == "9.9.3-1"
    assert make.targets.count("bzImage") == 2


def test_of_two_processes_one_builds_and_one_waits(store: Store, make: FakeMake) -> None:
    with make.held():
        first = started(store)
        wait_for(lambda: "bzImage" in make.targets, "a builder at work")
        second = started(store)
        steps = store.root.parent / f"steps-{second.pid}"
        waiting = f"waiting for process {first.pid}"
        wait_for(lambda: steps.exists() and waiting in steps.read_text(), "a waiting builder")
    for builder in (first, second):
        builder.join(60)
        assert builder.exitcode == 0
    assert make.targets.count("bzImage") == 1
    assert store.lookup(ENTRY) is not None


def test_killed_builder_frees_the_lock_and_leaves_no_kernel(store: Store, make: FakeMake) -> None:
    with make.held():
        victim = started(store)
        wait_for(lambda: "bzImage" in make.targets, "a builder at work")
        assert not (store.root / "kernels").exists()
        victim.kill()
        victim.join(60)
    assert victim.exitcode == -signal.SIGKILL
    assert store.lookup(ENTRY) is None
    ensure(ENTRY, store)
    assert make.targets.count("bzImage") == 2
    assert list((store.root / "work").iterdir()) == []
