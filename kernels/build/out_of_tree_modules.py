"""Build out-of-tree modules for kernels of the store, once, and keep them there."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from pathlib import Path

from msgspec.structs import replace

from host.deadline import Deadline
from host.files import sync
from host.progress import Progress, silent
from kernels.build.build import Workshop, ensure, objects_of, tree_of
from kernels.build.kbuild import Kbuild
from kernels.build.objects import ObjectsDirectory
from kernels.catalog.entries import TREE, KernelEntry
from kernels.errors import BuildFailed, UserMistake
from kernels.patches import applying
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store

MODULE_S = 1800.0
# kbuild needs one of these in a module's directory.
_RECIPES = ("Kbuild", "Makefile")
# Products of building a module in place, and git's files.
_NO_SOURCES = (
    ".git", "*.o", "*.ko", "*.mod", "*.mod.c", ".*.cmd", ".*.d", ".tmp_versions",
    "modules.order", "Module.symvers",
)  # fmt: skip
_SYMBOLS = "Module.symvers"


def ensure_module(
    entry: KernelEntry,
    directory: Path,
    store: Store,
    progress: Progress = silent,
    *,
    after: Sequence[Path] = (),
) -> Path:
    """The .ko of a directory with a Kbuild file (`obj-m := name.o`), for a kernel.

    Kernel and module are built if the store lacks them; the directory is only read.
    `after` are modules, as returned by this function, whose symbols it may use.
    Raises any `KernelsError`; BuildFailed has the first error of make.
    """
    directory = directory.absolute()
    digest = _digest(directory, after)
    kernel = store.lookup(entry)
    if kernel and (module := _kept(kernel, digest, store)):
        return module
    kernel = ensure(entry, store, progress=progress)
    what = f"building {directory.name} for {entry.kernel_id}"
    with locked_objects(entry, kernel, what, store, progress):
        if module := _kept(kernel, digest, store):
            return module
        place = _place(kernel, digest, store)
        return _build(entry, kernel, directory, place, after, store, progress)


def _build(
    entry: KernelEntry,
    kernel: BuiltKernel,
    directory: Path,
    place: Path,
    after: Sequence[Path],
    store: Store,
    progress: Progress,
) -> Path:
    """Build a copy of the directory and publish the module."""
    tree, objects = prepared(entry, kernel, store, progress)
    store.logs.mkdir(exist_ok=True)
    deadline = Deadline(MODULE_S, f"building the module {directory.name} for {entry.kernel_id}")
    log = store.logs / f"{kernel.key[:12]}-{directory.name}.log"
    kbuild = Kbuild(tree, objects.path, log, progress, words=entry.make, links=store.ccache)
    symbols = [each for module in after if (each := module.with_name(_SYMBOLS)).is_file()]
    with store.workspace() as work:
        # kbuild refuses spaces, colons and % in its path.
        copy = work / "module"
        shutil.copytree(directory, copy, ignore=shutil.ignore_patterns(*_NO_SOURCES))
        with applying.applied(entry.patches, tree, store, objects.last_patched):
            with objects.incomplete():
                kbuild.prepare_modules()
            kbuild.module(copy, deadline, symbols)
        modules = sorted(copy.rglob("*.ko"))
        if len(modules) != 1:
            found = ", ".join(module.name for module in modules) or "no module"
            raise BuildFailed(deadline.what, log, [f"it made {found}"])
        _publish(modules[0], copy / _SYMBOLS, work / "kept", place)
    return place / modules[0].name


def _publish(module: Path, symbols: Path, kept: Path, place: Path) -> None:
    """Move a module and its symbols to their place at once, by way of the directory `kept`."""
    kept.mkdir()
    for file in (module, symbols):
        if file.is_file():
            sync(file.rename(kept / file.name))
    place.parent.mkdir(parents=True, exist_ok=True)
    kept.rename(place)
    sync(place.parent)


@contextmanager
def locked_objects(
    entry: KernelEntry, kernel: BuiltKernel, what: str, store: Store, progress: Progress
) -> Iterator[None]:
    """Hold the locks of the objects of a kernel, and of the copy of a user's tree."""
    with ExitStack() as locks:
        if entry.source.kind == TREE:
            locks.enter_context(store.lock(entry.source.package, what, progress))
        objects = objects_of(entry, store.recipe(kernel), store)
        locks.enter_context(store.lock(objects.lock_name, what, progress))
        yield


def prepared(
    entry: KernelEntry, kernel: BuiltKernel, store: Store, progress: Progress
) -> tuple[Path, ObjectsDirectory]:
    """The source tree and the objects of exactly that kernel, rebuilt if they are missing."""
    workshop, recipe = Workshop(store, progress), store.recipe(kernel)
    entry = replace(entry, revision=recipe.revision)
    workshop.check(entry, recipe.revision)
    if workshop.choose(entry, recipe.revision) != recipe.revision:
        raise UserMistake(
            f"{entry.source} was edited after {entry.kernel_id} was built", "run it again"
        )
    objects = objects_of(entry, recipe, store)
    base = tree_of(entry, recipe, store)
    store.used(base)
    tree = objects.tree(entry, base)
    if not objects.holds(kernel.key) or not tree.is_dir():
        workshop.make(entry, recipe)
    return tree, objects


def _digest(directory: Path, after: Sequence[Path]) -> str:
    """sha256 over the files of a module and the modules before it.

    Raises UserMistake if it is not a module's directory, or not readable.
    """
    if not any((directory / name).is_file() for name in _RECIPES):
        raise UserMistake(
            f"{directory} is not a module's directory: it has no {' or '.join(_RECIPES)}",
            "write obj-m := NAME.o into a Kbuild file there",
        )
    digest = hashlib.sha256()
    try:
        for file in sorted(_sources(directory)):
            content = file.read_bytes()
            name = os.fsencode(file.relative_to(directory))
            digest.update(b"%b\0%d\0%b" % (name, len(content), content))
    except OSError as error:
        raise UserMistake(f"{error.filename}: {error.strerror}", "make it readable") from error
    for module in after:
        digest.update(f"{module.parent.name}\0".encode())
    return digest.hexdigest()


def _sources(directory: Path) -> Iterator[Path]:
    """The source files of a directory."""
    for path in directory.iterdir():
        if any(fnmatch(path.name, pattern) for pattern in _NO_SOURCES):
            continue
        if path.is_dir():
            yield from _sources(path)
        else:
            yield path


def _place(kernel: BuiltKernel, digest: str, store: Store) -> Path:
    return store.modules / kernel.interface / digest


def _kept(kernel: BuiltKernel, digest: str, store: Store) -> Path | None:
    """The module, if it was built before."""
    place = _place(kernel, digest, store)
    module = next(place.glob("*.ko"), None)
    if module is not None:
        store.used(place)
    return module
