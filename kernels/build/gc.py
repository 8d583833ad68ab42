"""Bounding the store: what was not used for longest goes first, what names in use need stays.

A thing goes by one rename into `work/`, where whoever holds the lock next finishes what a killed
process began.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from host.files import read_record
from host.progress import Progress, silent
from kernels.build.objects import ObjectsDirectory
from kernels.catalog.entries import KernelEntry
from kernels.errors import MIB
from kernels.store.store import RECORD, Store

# What there is, where below the root; each path that fits is a thing that can go by itself.
_KINDS = (
    ("kernel", "kernels/*"),
    ("module", "modules/*/*"),
    ("objects", "objects/*/*"),
    ("source", "sources/*"),
    ("apt", "apt"),
    ("log", "logs/*"),
    ("tree", "trees/*"),
    ("download", "downloads/*"),
    # Of guests: made again when they are missing.
    ("initramfs", "initramfs/*"),
    ("root", "roots/*.cpio"),
    ("snapshot", "snapshots/*"),
    ("durations", "durations/*"),
)
# Ends of names of what goes with a thing: a source tree's journal, the mark of the version that a
# download is a part of, the files that a root is made of, the lock of whoever makes a snapshot.
_WITH = {"source": ".journal", "download": ".json", "root": ".json", "snapshot": ".lock"}
# A run may be at work with what was used so lately, and holds no lock.
GRACE_S = 3600.0
# How long whoever builds is waited for.
_WAIT_S = 10.0
# Of a thing's name so much is shown where it is a digest.
_DIGITS = 12
# Marks of names that a user's request has made: see `Request.entry`.
_ADDED = ("+", "~")
_TREE = "tree-"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing in the store: bytes on disk, when it was used last, whether it has to stay."""

    kind: str
    name: str
    path: Path
    size: int
    used: float
    needed: bool = False

    def __str__(self) -> str:
        day = time.strftime("%Y-%m-%d", time.localtime(self.used))
        return f"{self.kind:<9} {in_mib(self.size):>10}  last used {day}  {self.name}"

    def to_json(self) -> dict[str, object]:
        """For programs; `used` is in seconds since 1970."""
        return {
            "kind": self.kind,
            "name": self.name,
            "bytes": self.size,
            "used": round(self.used),
        }


@dataclass(frozen=True, slots=True)
class Bound:
    """What may stay: so many bytes in all, or what was used since a time; `every` name or not.

    With `every`, not even what the names in use need has to stay.
    """

    keep: int | None = None
    since: float | None = None
    every: bool = False


@dataclass(frozen=True, slots=True)
class Collected:
    """What went (or would go), and what stays."""

    gone: tuple[Item, ...]
    stays: tuple[Item, ...]

    @property
    def freed(self) -> int:
        """Bytes that went."""
        return sum(item.size for item in self.gone)

    @property
    def kept(self) -> int:
        """Bytes that stay."""
        return sum(item.size for item in self.stays)

    @property
    def needed(self) -> int:
        """Bytes of that which names in use need."""
        return sum(item.size for item in self.stays if item.needed)

    def to_json(self) -> dict[str, object]:
        """For programs; sizes are in bytes."""
        gone = [item.to_json() for item in self.gone]
        return {"gone": gone, "freed": self.freed, "kept": self.kept, "needed": self.needed}


def collect(
    store: Store,
    in_use: Sequence[KernelEntry],
    bound: Bound,
    *,
    dry_run: bool = False,
    progress: Progress = silent,
    now: float | None = None,
) -> Collected:
    """Let things go until the bound is kept; `in_use` are the kernels whose things stay.

    Raises StoreBusy while somebody builds, StoreUnusable.
    """
    clock = time.time() if now is None else now
    if dry_run:
        return _chosen(survey(store, in_use), bound, clock)
    with store.locked("gc", progress, _WAIT_S):
        chosen = _chosen(survey(store, in_use), bound, clock)
        for item in chosen.gone:
            _remove(item, store)
        _forget_names(store)
    return chosen


def survey(store: Store, in_use: Sequence[KernelEntry]) -> tuple[Item, ...]:
    """Everything in the store that can go, the least recently used first."""
    needed = _needed(store, in_use)
    titles = _titles(store)
    found = []
    for kind, pattern in _KINDS:
        for path in store.root.glob(pattern):
            if kind in _WITH and path.name.endswith(_WITH[kind]):
                continue
            with suppress(FileNotFoundError):  # a builder finished with it meanwhile
                name = titles.get(path) or _name(kind, path)
                size = sum(map(usage, (path, *_companions(kind, path))))
                used = path.stat().st_mtime
                found.append(Item(kind, name, path, size, used, path in needed))
    return tuple(sorted(found, key=lambda item: item.used))


def usage(path: Path) -> int:
    """Bytes that a file or everything in a directory takes on disk, as far as we may look."""
    return sum(status.st_blocks * 512 for status in _walked(path))


def in_mib(size: int) -> str:
    """A size for people."""
    return f"{size / MIB:.0f} MiB" if size >= MIB else f"{size / 1024:.0f} KiB"


def _walked(path: Path) -> Iterator[os.stat_result]:
    with suppress(FileNotFoundError, PermissionError):
        yield path.lstat()
        if path.is_dir() and not path.is_symlink():
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        yield from _walked(Path(entry.path))
                    else:
                        yield entry.stat(follow_symlinks=False)


def _chosen(items: Sequence[Item], bound: Bound, now: float) -> Collected:
    """Which of the items, in their order, go."""
    left = sum(item.size for item in items)
    gone, stays = [], []
    for item in items:
        outdated = bound.since is not None and item.used < bound.since
        too_much = bound.keep is not None and left > bound.keep
        free = item.used < now - GRACE_S and (bound.every or not item.needed)
        if free and (outdated or too_much):
            gone.append(item)
            left -= item.size
        else:
            stays.append(item)
    return Collected(tuple(gone), tuple(stays))


def _needed(store: Store, in_use: Sequence[KernelEntry]) -> set[Path]:
    """What the kernels in use, as they were last built, were made from and consist of."""
    found: set[Path] = set()
    for entry in in_use:
        key = store.remembered_key(entry)
        kernel = store.load(entry, key) if key else None
        if kernel is None:
            continue
        recipe = store.recipe(kernel)
        tree = store.sources / f"{recipe.package}_{recipe.revision}"
        objects = ObjectsDirectory.of(entry, recipe, tree, store)
        found |= {kernel.image.parent, tree, objects.path, store.apt}
        found |= _last_modules(store.modules / kernel.interface)
    return found


def _last_modules(directory: Path) -> set[Path]:
    """The last used of the modules of each name: others are what their sources once were."""
    last: dict[str, Path] = {}
    for module in sorted(directory.glob("*/*.ko"), key=lambda each: each.parent.stat().st_mtime):
        last[module.name] = module.parent
    return set(last.values())


def _titles(store: Store) -> dict[Path, str]:
    """What kernels are called, by their directories: the names that led to them last."""
    titles: dict[Path, str] = {}
    for file in sorted((store.root / "names").glob("*.json")):
        record = read_record(file)
        if record is not None:
            path = store.root / "kernels" / str(record.get("key"))
            titles[path] = f"{titles[path]}, {file.stem}" if path in titles else file.stem
    return titles


def _name(kind: str, path: Path) -> str:
    """What a thing is called that no name leads to."""
    if kind == "kernel":
        record = read_record(path / RECORD) or {}
        return f"{record.get('package', '?')} {record.get('revision', '?')} {path.name[:_DIGITS]}"
    if kind == "module":
        module = next(path.glob("*.ko"), None)
        return f"{module.name if module else '?'} for {path.parent.name[:_DIGITS]}"
    return path.name if kind != "objects" else f"{path.name} of {path.parent.name}"


def _companions(kind: str, path: Path) -> tuple[Path, ...]:
    """What is of no use without a thing, as the originals of a source tree that is patched."""
    if kind not in _WITH:
        return ()
    base = path.stem if kind == "root" else path.name
    companion = path.with_name(f"{base}{_WITH[kind]}")
    return (companion,) if companion.exists() else ()


def _remove(item: Item, store: Store) -> None:
    """Let a thing go, by one rename, and the directory that held it if it was the last there."""
    with store.workspace("gc") as grave:
        for number, path in enumerate((item.path, *_companions(item.kind, item.path))):
            with suppress(FileNotFoundError):  # who makes snapshots bounds them too
                path.rename(grave / str(number))
    if item.path.parent.parent != store.root and item.path.parent != store.root:
        with suppress(OSError):
            item.path.parent.rmdir()


def _forget_names(store: Store) -> None:
    """Names of what users asked for lead nowhere once the kernel is gone.

    Those of the catalog stay: they remember a revision.
    """
    for file in (store.root / "names").glob("*.json"):
        record = read_record(file)
        key = str(record.get("key")) if record else ""
        added = file.stem.startswith(_TREE) or any(mark in file.stem for mark in _ADDED)
        if added and not (store.root / "kernels" / key / RECORD).is_file():
            file.unlink()
