"""A store below tmp_path and an entry that no package source has."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.catalog import KernelEntry, Needs, Source
from kernels.store import Store


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
