"""A store, fake build tools, a tree of the user, and CPU time."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
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


def run_measured(script: str, store: Store) -> tuple[str, float]:
    """Output and CPU time of a Python script that uses a store.

    In seconds, which tests that run meanwhile do not change.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "UEVT_CACHE": str(store.root)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return output.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
