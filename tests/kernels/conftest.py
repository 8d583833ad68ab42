"""Fixtures: a store, fake build tools, and a tree of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.store.store import Store
from tests.kernels.fake_make import FakeMake, keep_source
from tests.kernels.fake_sources import FakeApt
from tests.kernels.user_trees import commit, git, write_sources


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture
def make(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMake:
    """A fake make instead of the real one; the store holds the source tree of ENTRY."""
    keep_source(store)
    fake = FakeMake(tmp_path / "fake-make")
    monkeypatch.setenv("PATH", str(fake.directory), prepend=":")
    monkeypatch.setenv("MAKEFLAGS", "-n")
    return fake


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeApt:
    """Fake apt programs instead of the real ones."""
    fake = FakeApt(tmp_path / "fake-apt")
    monkeypatch.setenv("PATH", str(fake.directory), prepend=":")
    return fake


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A kernel tree that was built in place."""
    tree = tmp_path / "linux"
    write_sources(tree)
    (tree / "scripts/run.sh").chmod(0o755)
    (tree / "kernel/link.c").symlink_to("fork.c")
    for product in ("vmlinux", ".config", "kernel/fork.o"):
        (tree / product).write_text("product")
    return tree


@pytest.fixture
def checkout(tree: Path) -> Path:
    """The same as a git repository, in which an ignored file is tracked."""
    (tree / "kernel/blob.o").write_text("tracked all the same")
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "add", "-f", "kernel/blob.o")
    commit(tree)
    git(tree, "tag", "v6.13-rc2")
    return tree
