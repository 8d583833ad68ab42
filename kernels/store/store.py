"""The build store: finished kernels by key, names that lead to them, and locks.

Below `root` (UEVT_CACHE, else the user's cache directory):

- `kernels/<key>/`: image, config, kernel.json and kept files of a finished build; published by one
  rename
- `names/<kernel id>.json`: the key that a name stood for when it was last built
- `modules/<interface>/<digest>/`: a module, by what it sees of kernels and by its own source
- `sources/`, `objects/`, `apt/`, `ccache/`, `downloads/`: used by builds
- `views/`: source trees of patched builds, whose unpatched files are links to `sources/`
- `trees/<package>/`: records about a user's tree, whose copy is in `sources/`
- `initramfs/`: initial archives of images whose drivers are modules
- `roots/`, `snapshots/`, `durations/`: of guests; see `vm` and the plugin
- `running/`: the configuration of the kernel of `--here`; `explore/`: programs that are kept
- `bisect/`: bisections in progress
- `work/`: builds in progress, `logs/`: make's output
- `locks/`: one per objects directory and one for fetching; `lock`, shared by all builds
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import convert
from msgspec.structs import asdict, replace

from host import temporary_directories
from host.arch import IMAGE
from host.files import read_record, sweep, sync, write_atomically, write_record
from host.progress import Progress
from kernels.catalog.entries import KernelEntry
from kernels.errors import MIB, StoreFull, StoreUnusable
from kernels.store.built_kernel import KEPT, BuiltKernel, Product, Recipe
from kernels.tools import file_lock, toolchain
from kernels.tools.toolchain import Toolchain

SCHEMA = 1
CONFIG = "config"
RECORD = "kernel.json"
# A build takes minutes on a laptop and an hour on a small busy host.
LOCK_WAIT_S = 2 * 3600.0
_NOT_FOR_KBUILD = re.compile(r"[\s:]")
# Descriptors of held items, which stay open.
_held: dict[Path, int] = {}
_REFUSED = "kbuild refuses paths with a space or a colon"


class Store:
    """The build store in one directory.  Readers take no lock: finished entries are published
    whole.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or default_root()).absolute()
        # Unpacked source trees, one per revision; the journals of those that are patched.
        self.sources = self.root / "sources"
        # kbuild's output directories, kept so that the next build compiles only what differs.
        self.objects = self.root / "objects"
        self.views = self.root / "views"
        self.modules = self.root / "modules"
        # apt's state if the host's own does not do.
        self.apt = self.root / "apt"
        # Links to ccache by the compilers' names; the cache itself is the user's.
        self.ccache = self.root / "ccache"
        self.trees = self.root / "trees"
        # Tarballs and kernels on their way, interrupted ones included.
        self.downloads = self.root / "downloads"
        # Initial archives of images with modules, by the digest of their content.
        self.initramfs = self.root / "initramfs"
        self.logs = self.root / "logs"
        self._work = self.root / "work"
        self._lock = self.root / "lock"

    def lookup(self, entry: KernelEntry) -> BuiltKernel | None:
        """The kernel that this entry stood for when last built, unless entry or compiler changed.

        Reads two small files; starts a process only if gcc's or ld's file changed.
        """
        name = read_record(self._name_file(entry.kernel_id))
        if name is None or name.get("entry") != entry.digest():
            return None
        if not _same_toolchain(name):
            return None
        return self.load(entry, str(name.get("key")))

    def remembered_revision(self, entry: KernelEntry) -> str | None:
        """The revision that this entry's name was last resolved to; else that of the entry without
        additions, or of its base.

        An entry with a revision has only that one.
        """
        plain = replace(entry, label="")
        base = replace(plain, name=entry.of or entry.name)
        for kernel in dict.fromkeys(each.kernel_id for each in (entry, plain, base)):
            name = read_record(self._name_file(kernel))
            if name is not None and name.get("package") == entry.source.package:
                return str(name.get("revision"))
        return None

    def remembered_key(self, entry: KernelEntry) -> str | None:
        """The key of the last build of this entry, whatever changed since."""
        name = read_record(self._name_file(entry.kernel_id))
        return None if name is None else str(name.get("key"))

    def load(self, entry: KernelEntry, key: str) -> BuiltKernel | None:
        """The finished kernel of that key; None if it is absent, damaged or not of this key."""
        directory = self.root / "kernels" / key
        record = read_record(directory / RECORD)
        image = directory / IMAGE
        if record is None or not image.is_file() or not _is_of(key, record):
            return None
        release = str(record["release"])
        return BuiltKernel(
            kernel_id=entry.kernel_id,
            name=entry.name,
            abi=entry.abi_for(release),
            release=release,
            revision=str(record["revision"]),
            image=image,
            config=directory / CONFIG,
            config_sha256=str(record["config_sha256"]),
            wanted=entry.wanted,
            source=f"{record['package']} {record['revision']}",
            interface=str(record.get("interface") or key),
            of=entry.of,
        )

    def configuration(self, sha256: str) -> str | None:
        """The text of the stored configuration with this digest, or None."""
        for record in sorted((self.root / "kernels").glob(f"*/{RECORD}")):
            if (read_record(record) or {}).get("config_sha256") == sha256:
                with suppress(OSError):
                    return (record.parent / CONFIG).read_text(encoding="utf-8", errors="replace")
        return None

    def used(self, path: Path) -> None:
        """Stamp an item as used now, for garbage collection.

        The stamp is the modification time, which nothing else uses.  Read-only stores are skipped.
        """
        with suppress(OSError):
            os.utime(path)

    def hold(self, path: Path) -> None:
        """Keep an item from garbage collection until this process and those it forks end.

        A path elsewhere is ignored.
        """
        if path not in _held and path.is_relative_to(self.root):
            with suppress(OSError):
                _held[path] = file_lock.open_shared(path)

    def recipe(self, kernel: BuiltKernel) -> Recipe:
        """The recipe of a kernel of this store."""
        return convert(json.loads((kernel.image.parent / RECORD).read_bytes()), Recipe)

    def publish(self, recipe: Recipe, product: Product) -> None:
        """Publish a finished build under its key: whole and on disk, or not at all."""
        config = product.config.read_bytes()
        record = {
            "schema": SCHEMA,
            "release": product.release,
            "config_sha256": hashlib.sha256(config).hexdigest(),
            "interface": product.interface,
            "built": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **asdict(recipe),
        }
        target = self.root / "kernels" / recipe.key
        with self.workspace() as work:
            shutil.copyfile(product.image, work / IMAGE)
            (work / CONFIG).write_bytes(config)
            write_record(work / RECORD, record)
            for file in product.kept:
                copy = work / KEPT / file.relative_to(product.config.parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
            for file in work.rglob("*"):
                sync(file)
            work.chmod(0o755)  # a scratch directory is private, a kernel is not
            target.parent.mkdir(exist_ok=True)
            if target.exists():  # damaged, or it would not have been built again
                shutil.rmtree(target)
            work.rename(target)
            sync(target.parent)

    def remember(self, entry: KernelEntry, recipe: Recipe, stamp: str) -> None:
        """Let this entry's name lead to the recipe's kernel."""
        record = {
            "entry": entry.digest(),
            "package": recipe.package,
            "revision": recipe.revision,
            "compiler": recipe.compiler,
            "stamp": stamp,
            "key": recipe.key,
        }
        file = self._name_file(entry.kernel_id)
        file.parent.mkdir(exist_ok=True)
        write_record(file, record)

    def keep_given(self, content: bytes) -> Path:
        """A file of what a pipe gave; later sessions read it, until it is garbage-collected.

        Raises StoreUnusable, StoreFull.
        """
        file = self.root / "given" / hashlib.sha256(content).hexdigest() / "pipe"
        with self._usable("a file from a pipe"):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, content)
        return file

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """A scratch directory on the store's file system."""
        self._work.mkdir(parents=True, exist_ok=True)
        with temporary_directories.scratch(self._work) as directory:
            yield directory

    @contextmanager
    def locked(self, what: str, progress: Progress, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
        """Hold the whole store: nothing is built meanwhile.

        What killed builders left in `work/` is removed.  Raises StoreBusy naming the holder,
        StoreUnusable, StoreFull.
        """
        with self._usable(what), file_lock.held(self._lock, what, progress, wait_s):
            self.tidy()
            self._sweep()
            yield

    @contextmanager
    def lock(
        self, name: str, what: str, progress: Progress, wait_s: float = LOCK_WAIT_S
    ) -> Iterator[None]:
        """Hold the lock of one item, such as an objects directory; other items are free.

        The kernel releases the lock when its holder dies.  Raises what `locked` raises.
        """
        file = self.root / "locks" / name.replace("/", "_")
        with (
            self._usable(what),
            file_lock.held(self._lock, what, progress, wait_s, shared=True),
            file_lock.held(file, what, progress, wait_s),
        ):
            self._sweep()
            yield

    @property
    def flaw(self) -> str:
        """Why nothing can be built at its place, "" for nothing.  Creates nothing."""
        if _NOT_FOR_KBUILD.search(str(self.root)):
            return _REFUSED
        place = next(path for path in (self.root, *self.root.parents) if path.exists())
        if not place.is_dir() or not os.access(place, os.W_OK):
            return f"{place} is no directory that you can write to"
        return ""

    @contextmanager
    def _usable(self, what: str) -> Iterator[None]:
        """Create the root.  Raises StoreUnusable, and StoreFull if the disk fills up meanwhile."""
        if _NOT_FOR_KBUILD.search(str(self.root)):
            raise StoreUnusable(self.root, _REFUSED)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            if _is_of_others(self.root):
                why = "it is not your directory: others may have put programs into it"
                raise StoreUnusable(self.root, why)
        except OSError as error:
            why = f"{error.strerror or error}, for {what}"
            raise StoreUnusable(self.root, why) from error
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise self.full(what) from error

    def tidy(self) -> None:
        """Remove what killed builders left."""
        temporary_directories.sweep(self._work)

    def _sweep(self) -> None:
        """Remove unfinished files of killed processes."""
        for directory in (self.root / "names", *self.trees.glob("*"), self.downloads):
            sweep(directory)

    def require_space(self, needed_mib: int, what: str) -> None:
        """Raise StoreFull unless that much space is free on the store's file system."""
        if self._free_mib() < needed_mib:
            raise self.full(what, needed_mib)

    def full(self, what: str, needed_mib: int | None = None) -> StoreFull:
        """The error of too little space, or of a disk that filled up during the work."""
        return StoreFull(self.root, what, needed_mib, self._free_mib())

    def _free_mib(self) -> int:
        return shutil.disk_usage(self.root).free // MIB

    def _name_file(self, kernel_id: str) -> Path:
        return self.root / "names" / f"{kernel_id}.json"


def _is_of(key: str, record: Mapping[str, object]) -> bool:
    """Whether a record is that of the kernel with this key: it may have been edited."""
    try:
        return {"release", "config_sha256"} <= record.keys() and convert(record, Recipe).key == key
    except ValueError:  # also text that is no UTF-8
        return False


def _is_of_others(root: Path) -> bool:
    """Whether other users may have written to it: a sticky directory, or one they own in such.

    Raises OSError.
    """
    if root.stat().st_mode & stat.S_ISVTX:
        return True
    taken = bool(root.parent.stat().st_mode & stat.S_ISVTX)
    return taken and root.stat().st_uid not in (0, os.geteuid())


def default_root() -> Path:
    """UEVT_CACHE, else the user's cache directory for uevt."""
    if chosen := os.environ.get("UEVT_CACHE"):
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("uevt")


def _same_toolchain(name: dict[str, object]) -> bool:
    """Whether the host's compiler is that of a name's record.  True without a compiler."""
    stamp = toolchain.stamp()
    if stamp in ("", name.get("stamp")):
        return True
    return Toolchain.of_host().version == name.get("compiler")
