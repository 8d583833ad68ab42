"""A store below tmp_path and an entry that no package source has."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.catalog import KernelEntry
from kernels.store import Store
from tests.kernels.fake_make import ENTRY, FakeMake, keep_source


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture
def entry() -> KernelEntry:
    """A kernel to be built by a fake workshop or a fake make."""
    return ENTRY


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
    keep_source(store)
    return entry
