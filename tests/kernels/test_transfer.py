"""A kernel goes from one store to another as a whole, and unchanged."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from kernels.catalog.catalog import load_catalog
from kernels.errors import HostTrouble
from kernels.store import transfer
from kernels.store.store import Store
from kernels.store.transfer import Damaged, chunk, pack, receive
from kernels.tools import toolchain
from tests.kernels.fake_make import ENTRY, RECIPE, publish


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


@pytest.fixture
def receiver(tmp_path: Path) -> Store:
    return Store(tmp_path / "receiver")


class Link(Struct):
    """Gets chunks from a store; ends after so many, and damages those with these numbers."""

    store: Store
    fetched: list[tuple[str, int]] = field(default_factory=list)
    most: int = 1000
    damaged: Container[int] = ()

    def __call__(self, name: str, number: int) -> bytes:
        if len(self.fetched) == self.most:
            raise ConnectionResetError
        self.fetched.append((name, number))
        return b"other" if len(self.fetched) in self.damaged else chunk(self.store, name, number)


def check_same(receiver: Store, sender: Store) -> None:
    """The kernel of the receiver is that of the sender, whichever compiler it has."""
    here, there = receiver.lookup(ENTRY), sender.load(ENTRY, RECIPE.key)
    assert here is not None
    assert there is not None
    assert here.image.read_bytes() == there.image.read_bytes()
    assert replace(here, image=there.image, config=there.config) == there


def test_a_kernel_arrives_with_its_modules(
    sender: Store, receiver: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine with another compiler."""
    package, link = pack(sender, ENTRY), Link(sender)
    monkeypatch.setattr(toolchain, "stamp", lambda: "another")
    receive(package, receiver, ENTRY, link)
    number = len(link.fetched)
    receive(package, receiver, ENTRY, link)
    assert len(link.fetched) == number == len(package.files)
    check_same(receiver, sender)
    assert next(receiver.modules.rglob("*.ko")).read_bytes() == b"module"
    assert list(receiver.downloads.iterdir()) == []


def test_an_interrupted_transfer_goes_on(
    sender: Store, receiver: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another process: only what is missing or damaged is sent again."""
    monkeypatch.setattr(transfer, "CHUNK", 4)
    package = pack(sender, ENTRY)
    whole = sum(map(len, package.files.values()))
    with pytest.raises(ConnectionResetError):
        receive(package, receiver, ENTRY, Link(sender, most=whole // 2))
    assert receiver.lookup(ENTRY) is None
    next((receiver.downloads / package.key).rglob("bzImage")).write_bytes(b"torn, and longer")
    rest = Link(sender)
    receive(package, receiver, ENTRY, rest)
    # The image has two chunks.
    assert len(rest.fetched) == whole - whole // 2 + 2
    check_same(receiver, sender)


def test_a_damaged_chunk_is_fetched_again(sender: Store, receiver: Store) -> None:
    package = pack(sender, ENTRY)
    link = Link(sender, damaged={1, 2})
    receive(package, receiver, ENTRY, link)
    assert len(link.fetched) == len(package.files) + 2
    assert receiver.lookup(ENTRY) is not None


def test_a_damaged_kernel_is_refused(sender: Store, receiver: Store) -> None:
    with pytest.raises(Damaged, match="was damaged on its way"):
        receive(pack(sender, ENTRY), receiver, ENTRY, Link(sender, damaged=range(1000)))
    assert receiver.lookup(ENTRY) is None


def test_a_kernel_that_is_not_there_cannot_be_sent(tmp_path: Path) -> None:
    with pytest.raises(HostTrouble, match="is not in"):
        pack(Store(tmp_path / "empty"), load_catalog().find("6.12"))
