"""A store below tmp_path and an entry that no package source has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernels.catalog import KernelEntry, Needs, Source
from kernels.progress import silent
from kernels.store import Recipe, Store
from tests.kernels.fake_make import FakeMake


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture
def entry() -> KernelEntry:
    """A kernel to be built by a fake workshop or a fake make."""
    return KernelEntry(
        name="9.9",
        abi="release",
        source=Source("debian-source", "linux-source-9.9"),
        fragments=("guest",),
        wanted=("CONFIG_A=y", "# CONFIG_B is not set"),
        patches=(),
        needs=Needs(tools=("gcc",), tree_mib=1, objects_mib=1, objects=4),
        default=True,
    )


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMake:
    """A fake make in the place of the real one."""
    fake = FakeMake(tmp_path / "fake-make")
    monkeypatch.setenv("PATH", str(fake.directory), prepend=":")
    monkeypatch.setenv("MAKEFLAGS", "-n")
    return fake


@pytest.fixture
def built_before(entry: KernelEntry, store: Store) -> KernelEntry:
    """The entry, whose source tree is in the store and whose name remembers it."""
    tree = store.sources / "linux-source-9.9_9.9.3-1"
    tree.mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 9\n")
    os.utime(tree / "Makefile", (0, 0))
    with store.locked("a test", silent):
        store.remember(entry, Recipe("linux-source-9.9", "9.9.3-1", (), "", "gcc 0"), "")
    return entry
