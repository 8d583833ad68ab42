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
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is first on PATH."""
    directory = tmp_path / "programs"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory), prepend=":")
    return directory


@pytest.fixture
def bare_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH, without programs."""
    directory = tmp_path / "bare"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    return directory


@pytest.fixture
def make(store: Store, programs: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMake:
    """A fake make instead of the real one; the store holds the source tree of ENTRY."""
    keep_source(store)
    monkeypatch.setenv("MAKEFLAGS", "-n")
    return FakeMake(programs)


@pytest.fixture
def apt(programs: Path) -> FakeApt:
    """Fake apt programs instead of the real ones."""
    return FakeApt(programs)


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
