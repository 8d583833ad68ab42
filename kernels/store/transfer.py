"""A built kernel on its way from one store to another, by its key and checked by its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from host.files import sync
from kernels.catalog.entries import KernelEntry
from kernels.errors import HostTrouble
from kernels.store.store import Store
from kernels.tools import toolchain


class Damaged(HostTrouble):
    """A kernel that is not what was sent."""

    def __init__(self, kernel: str) -> None:
        super().__init__(f"{kernel} was damaged on its way here", "send it again")


@dataclass(frozen=True, slots=True)
class Package:
    """A kernel with its helper modules: content by path below the store's root."""

    kernel: str
    key: str
    files: Mapping[str, bytes]
    sha256: str

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(map(len, self.files.values()))


def pack(store: Store, entry: KernelEntry) -> Package:
    """The kernel that an entry stands for.  Raises HostTrouble if the store has none."""
    kernel = store.lookup(entry)
    if kernel is None:
        raise HostTrouble(f"{entry.kernel_id} is not in {store.root}", "build it first")
    places = (kernel.image.parent, store.modules / kernel.interface)
    files = {
        str(file.relative_to(store.root)): file.read_bytes()
        for place in places
        for file in sorted(place.rglob("*"))
        if file.is_file()
    }
    return Package(entry.kernel_id, kernel.key, files, _digest(files.items()))


def unpack(package: Package, store: Store, entry: KernelEntry) -> None:
    """Put a kernel into a store, unless it is there.

    The entry stands for it from then on, whatever the compiler of this machine is.  Raises Damaged,
    OSError.
    """
    known = store.lookup(entry)
    if known is not None and known.key == package.key:
        return
    if _digest(package.files.items()) != package.sha256:
        raise Damaged(package.kernel)
    # Whole directories, in their order: the kernel is there when its modules are.
    places = {_place(name) for name in package.files}
    for place in sorted(places, key=lambda each: each.startswith("kernels/")):
        target = store.root / place
        if target.exists():
            continue
        with store.workspace() as work:
            directory = work / "received"
            for name, content in package.files.items():
                if _place(name) == place:
                    file = directory / Path(name).relative_to(place)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)
                    sync(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                directory.rename(target)
            except OSError:
                # Another process was faster.
                if not target.exists():
                    raise
        sync(target.parent)
    kernel = store.load(entry, package.key)
    if kernel is None:
        raise Damaged(package.kernel)
    store.remember(entry, store.recipe(kernel), toolchain.stamp())


def _place(name: str) -> str:
    """The directory that is published at once: kernels/KEY or modules/INTERFACE/DIGEST."""
    parts = Path(name).parts
    return str(Path(*parts[: 2 if parts[0] == "kernels" else 3]))


def _digest(files: Iterable[tuple[str, bytes]]) -> str:
    found = hashlib.sha256()
    for name, content in sorted(files):
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()
