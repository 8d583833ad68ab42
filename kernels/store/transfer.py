"""A built kernel on its way from one store to another: in chunks, each checked by its digest.

What arrived stays in the store's `downloads/` until the kernel is whole: an interrupted transfer
goes on, also in another process and from another sender.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from host.files import sync, write_atomically
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


@dataclass(frozen=True, slots=True)
class Package:
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
        str(file.relative_to(store.root)): _digests(file.read_bytes())
        for place in places
        for file in sorted(place.rglob("*"))
        if file.is_file()
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
        received.mkdir(parents=True, exist_ok=True)
        for name, digests in package.files.items():
            for number, digest in enumerate(digests):
                if not _is_whole(received / digest, digest):
                    content = _fetched(package, fetch, name, number)
                    write_atomically(received / digest, content)
        # Whole directories, in their order: the kernel is there when its modules are.
        places = {_place(name) for name in package.files}
        for place in sorted(places, key=lambda each: each.startswith("kernels/")):
            _publish(package, place, store, received)
        kernel = store.load(entry, package.key)
        if kernel is None:
            raise Damaged(package.kernel)
        store.remember(entry, store.recipe(kernel), toolchain.stamp())
        shutil.rmtree(received)


def _has(store: Store, entry: KernelEntry, package: Package) -> bool:
    known = store.lookup(entry)
    return known is not None and known.key == package.key


def _fetched(package: Package, fetch: Callable[[str, int], bytes], name: str, number: int) -> bytes:
    for _ in range(_ATTEMPTS):
        content = fetch(name, number)
        if hashlib.sha256(content).hexdigest() == package.files[name][number]:
            return content
    raise Damaged(package.kernel)


def _publish(package: Package, place: str, store: Store, received: Path) -> None:
    """Join the chunks of a directory."""
    target = store.root / place
    if target.exists():
        return
    with store.workspace() as work:
        directory = work / "received"
        for name, digests in package.files.items():
            if _place(name) == place:
                file = directory / Path(name).relative_to(place)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(b"".join((received / each).read_bytes() for each in digests))
                sync(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            directory.rename(target)
        except OSError:
            # A build, or a transfer of a kernel with the same modules, was faster.
            if not target.exists():
                raise
    sync(target.parent)


def _place(name: str) -> str:
    """The directory that is published at once: kernels/KEY or modules/INTERFACE/DIGEST."""
    parts = Path(name).parts
    return str(Path(*parts[: 2 if parts[0] == "kernels" else 3]))


def _digests(content: bytes) -> tuple[str, ...]:
    parts = (content[start : start + CHUNK] for start in range(0, len(content), CHUNK))
    return tuple(hashlib.sha256(part).hexdigest() for part in parts)


def _is_whole(file: Path, digest: str) -> bool:
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == digest
