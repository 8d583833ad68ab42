"""A built kernel on its way from one store to another: in chunks, each checked by its digest.

What arrived stays in the store's `downloads/` until the kernel is whole: an interrupted transfer
goes on, also in another process and from another sender.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from host.files import sync
from host.progress import silent
from kernels.catalog.entries import KernelEntry
from kernels.errors import HostTrouble
from kernels.store.store import Store
from kernels.tools import toolchain

#: Bytes of a chunk; the last one of a file has less.
CHUNK = 1 << 20
# How often a chunk is asked for that arrives damaged.
_ATTEMPTS = 3


class Damaged(HostTrouble):
    """A kernel that is not what was sent."""

    def __init__(self, kernel: str) -> None:
        super().__init__(f"{kernel} was damaged on its way here", "send it again")


class Package(Struct, frozen=True):
    """A kernel with its helper modules: digests of the chunks by path below the store's root."""

    kernel: str
    key: str
    files: Mapping[str, tuple[str, ...]]


def pack(store: Store, entry: KernelEntry) -> Package:
    """The kernel that an entry stands for.  Raises HostTrouble if the store has none."""
    kernel = store.lookup(entry)
    if kernel is None:
        raise HostTrouble(f"{entry.kernel_id} is not in {store.root}", "build it first")
    places = (kernel.image.parent, store.modules / kernel.interface)
    files = {
        str(file.relative_to(store.root)): tuple(
            _digest(content[start : start + CHUNK]) for start in range(0, len(content), CHUNK)
        )
        for place in places
        for file in sorted(place.rglob("*"))
        if file.is_file()
        for content in [file.read_bytes()]
    }
    return Package(entry.kernel_id, kernel.key, files)


def chunk(store: Store, name: str, number: int) -> bytes:
    """One chunk of a file of a package, from 0.  Raises OSError."""
    with (store.root / name).open("rb") as file:
        file.seek(number * CHUNK)
        return file.read(CHUNK)


def receive(
    package: Package, store: Store, entry: KernelEntry, fetch: Callable[[str, int], bytes]
) -> None:
    """Put a kernel into a store, unless it is there; ``fetch`` gets a chunk from another store.

    The entry stands for it from then on, whatever the compiler of this machine is.  Raises Damaged,
    OSError, what ``fetch`` and `Store.lock` raise.
    """
    if _has(store, entry, package):
        return
    with store.lock(f"receive-{package.key}", f"receiving {package.kernel}", silent):
        # Another process was faster.
        if _has(store, entry, package):
            return
        received = store.downloads / package.key
        for name in package.files:
            _complete(received / name, package, name, fetch)
        # Whole directories, in their order: the kernel is there when its modules are.
        places = {_place(name) for name in package.files}
        for place in sorted(places, key=lambda each: each.startswith("kernels/")):
            target = store.root / place
            target.parent.mkdir(parents=True, exist_ok=True)
            # A build, or a transfer of a kernel with the same modules, may have been faster.
            with suppress(OSError):
                (received / place).rename(target)
            if not target.exists():
                raise Damaged(package.kernel)
            sync(target.parent)
        shutil.rmtree(received)
        kernel = store.load(entry, package.key)
        if kernel is None:
            raise Damaged(package.kernel)
        store.remember(entry, store.recipe(kernel), toolchain.stamp())


def _has(store: Store, entry: KernelEntry, package: Package) -> bool:
    known = store.lookup(entry)
    return known is not None and known.key == package.key


def _complete(path: Path, package: Package, name: str, fetch: Callable[[str, int], bytes]) -> None:
    """Fetch what a file lacks.  Raises Damaged, and what ``fetch`` raises."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    with path.open("r+b") as file:
        for number, digest in enumerate(package.files[name]):
            content, attempts = file.read(CHUNK), 0
            while _digest(content) != digest:
                if attempts == _ATTEMPTS:
                    raise Damaged(package.kernel)
                content, attempts = fetch(name, number), attempts + 1
                file.seek(number * CHUNK)
                file.write(content)
        file.truncate()
    sync(path)


def _place(name: str) -> str:
    """The directory that is published at once: kernels/KEY or modules/INTERFACE/DIGEST."""
    parts = Path(name).parts
    return str(Path(*parts[: 2 if parts[0] == "kernels" else 3]))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
