"""Garbage-collect the build store, least recently used first; keep what a kernel in use needs.

An item is removed by one rename into `work/`; the next holder of the lock deletes what a killed
process left there.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from host.files import read_record
from host.progress import Progress, silent
from kernels.build.build import objects_of, tree_of
from kernels.catalog.entries import KernelEntry
from kernels.errors import MIB
from kernels.patches.journal import journal_of
from kernels.store.store import RECORD, Store
from kernels.tools.file_lock import is_shared

# Kinds of items: each path that matches is an item that can be removed by itself.
_KINDS = (
    ("kernel", "kernels/*"),
    ("module", "modules/*/*"),
    ("objects", "objects/*/*"),
    ("source", "sources/*"),
    ("apt", "apt"),
    ("log", "logs/*"),
    ("tree", "trees/*"),
    ("download", "downloads/*"),
    # Patches and fragments from pipes.
    ("given", "given/*"),
    # Of guests: recreated on demand.
    ("initramfs", "initramfs/*"),
    ("root", "roots/*.cpio"),
    ("snapshot", "snapshots/*"),
    ("durations", "durations/*"),
)
# Suffixes of files that belong to an item: the journal of a source tree, the version of a partial
# download, the file list of a root archive, the lock of a snapshot.
_WITH = {"source": ".journal", "download": ".json", "root": ".json", "snapshot": ".lock"}
# A run holds the kernel and the modules that it uses.  What else it needs, and what a build that
# waits has read, was used this recently.
GRACE_S = 3600.0
# How long to wait for a build to end.
_WAIT_S = 10.0
# Digits of a digest that are shown.
_DIGITS = 12
# Marks of names that a request with additions has created (see `Request.entry`).
_ADDED = ("+", "~")
_TREE = "tree-"


class Item(Struct, frozen=True):
    """One item of the store: bytes on disk, last use, and whether a kernel in use needs it."""

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
        """The JSON form; `used` is in seconds since 1970."""
        return {
            "kind": self.kind,
            "name": self.name,
            "bytes": self.size,
            "used": round(self.used),
        }


class Bound(Struct, frozen=True):
    """The limit: bytes in all, or the oldest last use.

    With `every`, needed items may be removed as well.
    """

    keep: int | None = None
    since: float | None = None
    every: bool = False


class Collected(Struct, frozen=True):
    """The removed items (or those to be removed), and the remaining ones."""

    gone: tuple[Item, ...]
    stays: tuple[Item, ...]

    @property
    def freed(self) -> int:
        """Bytes that were removed."""
        return sum(item.size for item in self.gone)

    @property
    def kept(self) -> int:
        """Bytes that remain."""
        return sum(item.size for item in self.stays)

    @property
    def needed(self) -> int:
        """Remaining bytes that kernels in use need."""
        return sum(item.size for item in self.stays if item.needed)

    def to_json(self) -> dict[str, object]:
        """The JSON form; sizes are in bytes."""
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
    """Remove items until the bound is met; `in_use` are the kernels to keep.

    Raises StoreBusy during a build, StoreUnusable.
    """
    clock = time.time() if now is None else now
    if dry_run:
        return _choose(survey(store, in_use), bound, clock)
    with store.locked("gc", progress, _WAIT_S):
        chosen = _choose(survey(store, in_use), bound, clock)
        # Deleting takes minutes, in which a run may begin: it must not find what is about to go.
        with store.workspace() as trash:
            for number, item in enumerate(chosen.gone):
                _remove(item, store, trash / str(number))
        _forget_names(store)
        # Every holder of one also holds the lock of the store.
        shutil.rmtree(store.root / "locks", ignore_errors=True)
    return chosen


def survey(store: Store, in_use: Sequence[KernelEntry]) -> tuple[Item, ...]:
    """All items of the store, the least recently used first."""
    needed = _needed(store, in_use)
    titles = _titles(store)
    found = []
    for kind, pattern in _KINDS:
        for path in store.root.glob(pattern):
            if kind in _WITH and path.name.endswith(_WITH[kind]):
                continue
            with suppress(FileNotFoundError):  # removed by a builder meanwhile
                name = titles.get(path) or _name(kind, path)
                parts = (path, *_companions(kind, path, store))
                size = sum(map(usage, parts))
                used = max(part.stat().st_mtime for part in parts)
                found.append(Item(kind, name, path, size, used, path in needed))
    return tuple(sorted(found, key=lambda item: item.used))


def usage(path: Path) -> int:
    """Bytes on disk of a file or directory, as far as it is readable."""
    return sum(map(_space, _walked(path)))


def _space(status: os.stat_result) -> int:
    """Bytes on disk of a file; its links share them."""
    links = status.st_nlink if stat.S_ISREG(status.st_mode) else 1
    return status.st_blocks * 512 // max(1, links)


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


def _choose(items: Sequence[Item], bound: Bound, now: float) -> Collected:
    """Decide which items are removed."""
    left = sum(item.size for item in items)
    gone, stays = [], []
    for item in items:
        outdated = bound.since is not None and item.used < bound.since
        too_much = bound.keep is not None and left > bound.keep
        free = item.used < now - GRACE_S and (bound.every or not item.needed)
        if free and (outdated or too_much) and not is_shared(item.path):
            gone.append(item)
            left -= item.size
        else:
            stays.append(item)
    return Collected(tuple(gone), tuple(stays))


def _needed(store: Store, in_use: Sequence[KernelEntry]) -> set[Path]:
    """The paths that the last builds of some kernels consist of and were made from."""
    found: set[Path] = set()
    for entry in in_use:
        key = store.remembered_key(entry)
        kernel = store.load(entry, key) if key else None
        if kernel is None:
            continue
        recipe = store.recipe(kernel)
        tree, objects = tree_of(entry, recipe, store), objects_of(entry, recipe, store)
        found |= {kernel.image.parent, tree, objects.path, store.apt}
        found |= _last_modules(store.modules / kernel.interface)
    return found


def _last_modules(directory: Path) -> set[Path]:
    """The last used build of each module; others are of older sources."""
    last: dict[str, Path] = {}
    for module in sorted(directory.glob("*/*.ko"), key=lambda each: each.parent.stat().st_mtime):
        last[module.name] = module.parent
    return set(last.values())


def _titles(store: Store) -> dict[Path, str]:
    """The names that lead to each kernel directory."""
    titles: dict[Path, str] = {}
    for file in sorted((store.root / "names").glob("*.json")):
        record = read_record(file)
        if record is not None:
            path = store.root / "kernels" / str(record.get("key"))
            titles[path] = f"{titles[path]}, {file.stem}" if path in titles else file.stem
    return titles


def _name(kind: str, path: Path) -> str:
    """The name of an item that no kernel name leads to."""
    if kind == "kernel":
        record = read_record(path / RECORD) or {}
        return f"{record.get('package', '?')} {record.get('revision', '?')} {path.name[:_DIGITS]}"
    if kind == "module":
        module = next(path.glob("*.ko"), None)
        return f"{module.name if module else '?'} for {path.parent.name[:_DIGITS]}"
    return path.name if kind != "objects" else f"{path.name} of {path.parent.name}"


def _companions(kind: str, path: Path, store: Store) -> tuple[Path, ...]:
    """Files that are useless without the item."""
    if kind == "objects":
        view = store.views / path.parent.name / path.name
        return tuple(each for each in (view, journal_of(view)) if each.exists())
    if kind not in _WITH:
        return ()
    base = path.stem if kind == "root" else path.name
    companion = path.with_name(f"{base}{_WITH[kind]}")
    return (companion,) if companion.exists() else ()


def _remove(item: Item, store: Store, trash: Path) -> None:
    """Remove an item by one rename, and its parent directory if that is empty."""
    trash.mkdir()
    for number, path in enumerate((item.path, *_companions(item.kind, item.path, store))):
        with suppress(FileNotFoundError):  # vm.snapshots removes old ones, too
            path.rename(trash / str(number))
    if item.path.parent.parent != store.root and item.path.parent != store.root:
        with suppress(OSError):
            item.path.parent.rmdir()


def _forget_names(store: Store) -> None:
    """Remove names of users' requests whose kernel is gone.

    Those of the catalog stay: they remember a revision.
    """
    for file in (store.root / "names").glob("*.json"):
        record = read_record(file)
        key = str(record.get("key")) if record else ""
        added = file.stem.startswith(_TREE) or any(mark in file.stem for mark in _ADDED)
        if added and not (store.root / "kernels" / key / RECORD).is_file():
            file.unlink()
