"""`ensure` builds a kernel once, in one process, and never publishes half of it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from kernels.build.build import Toolset, ensure
from kernels.catalog.catalog import load_catalog
from kernels.catalog.entries import KernelEntry
from kernels.store.built_kernel import Product, Recipe
from kernels.store.store import Store
from kernels.tools import toolchain
from kernels.tools.toolchain import Toolchain
from tests.kernels.fake_make import ENTRY
from tests.processes import wait_for


@dataclass
class FakeWorkshop:
    """Makes an image of a few bytes, and logs its calls."""

    directory: Path
    revision: str = "6.12.1-1"
    takes_s: float = 0.0
    diary: list[str] = field(default_factory=list)

    def check(self, entry: KernelEntry, revision: str | None) -> None:
        """Anything can be built."""

    def prepare(self, entry: KernelEntry, revision: str | None) -> Toolset:
        self.diary.append(f"prepare {entry.kernel_id} {revision}")
        return Toolset(revision or self.revision, Toolchain("gcc 1", toolchain.stamp()))

    def make(self, entry: KernelEntry, recipe: Recipe) -> Product:
        self.diary.append(f"make {recipe.revision}")
        with (self.directory / "makes").open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(self.takes_s)
        image = self.directory / f"image-{os.getpid()}"
        image.write_bytes(b"image of " + recipe.revision.encode())
        config = self.directory / f"config-{os.getpid()}"
        config.write_text("CONFIG_A=y\n")
        return Product("6.12.1", image, config)


def build_in_a_process(root: Path, takes_s: float) -> None:
    """Main function of child processes: build 6.12 in that store with a fake workshop."""
    shop = FakeWorkshop(root.parent, takes_s=takes_s)
    kernel = ensure(load_catalog().find("6.12"), Store(root), workshop=shop)
    output = f"{kernel.image.read_bytes().decode()}, {len(shop.diary)} steps"
    (root.parent / f"output-{os.getpid()}").write_text(output)


def started(root: Path, takes_s: float) -> BaseProcess:
    builder = get_context("spawn").Process(
        target=build_in_a_process, args=(root, takes_s), daemon=True
    )
    builder.start()
    return builder


def output_of(builder: BaseProcess, directory: Path) -> str:
    builder.join(60)
    return (directory / f"output-{builder.pid}").read_text()


def makes(directory: Path) -> list[str]:
    """The processes that began to build."""
    file = directory / "makes"
    return file.read_text().split() if file.exists() else []


def wait_for_make(directory: Path) -> None:
    wait_for(lambda: makes(directory), "a builder at work")


def test_a_kernel_is_built_once(store: Store, tmp_path: Path) -> None:
    shop = FakeWorkshop(tmp_path)
    first = ensure(ENTRY, store, workshop=shop)
    second = ensure(ENTRY, store, workshop=shop)
    assert first == second
    assert first.image.read_bytes() == b"image of 6.12.1-1"
    assert shop.diary == ["prepare 9.9 None", "make 6.12.1-1"]


def test_refresh_resolves_the_revision_again(store: Store, tmp_path: Path) -> None:
    shop = FakeWorkshop(tmp_path)
    ensure(ENTRY, store, workshop=shop)
    ensure(ENTRY, store, workshop=shop, refresh=True)
    shop.revision = "6.12.2-1"
    assert ensure(ENTRY, store, workshop=shop).revision == "6.12.1-1"
    assert ensure(ENTRY, store, workshop=shop, refresh=True).revision == "6.12.2-1"
    assert ensure(ENTRY, store, workshop=shop).revision == "6.12.2-1"
    prepare = "prepare 9.9 None"
    assert shop.diary == [prepare, "make 6.12.1-1", prepare, prepare, "make 6.12.2-1"]


def test_changed_configuration_keeps_the_revision(store: Store, tmp_path: Path) -> None:
    shop = FakeWorkshop(tmp_path)
    ensure(ENTRY, store, workshop=shop)
    shop.revision = "6.12.2-1"
    changed = replace(ENTRY, wanted=("CONFIG_A=y", "CONFIG_C=y"))
    assert ensure(changed, store, workshop=shop).revision == "6.12.1-1"
    assert shop.diary[-1] == "make 6.12.1-1"


def test_of_two_processes_one_builds_and_one_waits(tmp_path: Path) -> None:
    root = tmp_path / "store"
    first = started(root, 1.5)
    wait_for_make(tmp_path)
    second = started(root, 1.5)
    assert output_of(first, tmp_path) == "image of 6.12.1-1, 2 steps"
    assert output_of(second, tmp_path) == "image of 6.12.1-1, 1 steps"
    assert makes(tmp_path) == [str(first.pid)]


def test_killed_builder_frees_the_lock_and_leaves_no_kernel(tmp_path: Path) -> None:
    root = tmp_path / "store"
    victim = started(root, 600)
    wait_for_make(tmp_path)
    assert not (root / "kernels").exists()
    victim.kill()
    victim.join(60)
    assert victim.exitcode == -signal.SIGKILL
    successor = started(root, 0)
    assert output_of(successor, tmp_path) == "image of 6.12.1-1, 2 steps"
    assert makes(tmp_path) == [str(victim.pid), str(successor.pid)]
    assert list((root / "work").iterdir()) == []
