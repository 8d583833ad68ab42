"""A kernel goes from one store to another as a whole, and unchanged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernels.catalog.catalog import load_catalog
from kernels.errors import HostTrouble
from kernels.store.store import Store
from kernels.store.transfer import Damaged, pack, unpack
from kernels.tools import toolchain
from tests.kernels.fake_make import ENTRY, publish


@pytest.fixture
def sender(tmp_path: Path) -> Store:
    """A store with a kernel and a module of it."""
    store = Store(tmp_path / "sender")
    publish(store, tmp_path, stamp=toolchain.stamp())
    kernel = store.lookup(ENTRY)
    assert kernel is not None
    module = store.modules / kernel.interface / "digest" / "probe.ko"
    module.parent.mkdir(parents=True)
    module.write_bytes(b"module")
    return store


def test_a_kernel_arrives_with_its_modules(
    sender: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine with another compiler."""
    package = pack(sender, ENTRY)
    monkeypatch.setattr(toolchain, "stamp", lambda: "another")
    receiver = Store(tmp_path / "receiver")
    unpack(package, receiver, ENTRY)
    unpack(package, receiver, ENTRY)
    here, there = receiver.lookup(ENTRY), sender.load(ENTRY, package.key)
    assert here is not None
    assert there is not None
    assert here.image.read_bytes() == there.image.read_bytes()
    assert replace(here, image=there.image, config=there.config) == there
    assert next(receiver.modules.rglob("*.ko")).read_bytes() == b"module"
    assert list((receiver.root / "work").iterdir()) == []


def test_a_damaged_kernel_is_refused(sender: Store, tmp_path: Path) -> None:
    package = pack(sender, ENTRY)
    name = next(iter(package.files))
    damaged = replace(package, files={**package.files, name: b"other"})
    receiver = Store(tmp_path / "receiver")
    with pytest.raises(Damaged, match="was damaged on its way"):
        unpack(damaged, receiver, ENTRY)
    assert receiver.lookup(ENTRY) is None


def test_a_kernel_that_is_not_there_cannot_be_sent(tmp_path: Path) -> None:
    with pytest.raises(HostTrouble, match="is not in"):
        pack(Store(tmp_path / "empty"), load_catalog().find("6.12"))
