"""Out-of-tree modules for kernels of the store, built once and kept there."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

from kernels.build import HostWorkshop, ensure
from kernels.catalog import TREE, KernelEntry
from kernels.deadline import Deadline
from kernels.errors import BuildFailed, UserMistake
from kernels.files import digest_of, sync
from kernels.kbuild import Kbuild
from kernels.objects import ObjectsDirectory
from kernels.progress import Progress, silent
from kernels.sources import SourceTrees
from kernels.store import BuiltKernel, Store

MODULE_S = 1800.0
# One of these makes a directory one that kbuild can be pointed at.
_RECIPES = ("Kbuild", "Makefile")


def ensure_module(
    entry: KernelEntry, directory: Path, store: Store, progress: Progress = silent
) -> Path:
    """The .ko that a directory with a Kbuild file (`obj-m := name.o`) is for a kernel.

    Kernel and module are built where the store lacks them; the directory is only read.
    Raises any `KernelsError`; BuildFailed has the last lines of make.
    """
    directory = directory.absolute()
    digest = _digest(directory)
    kernel = store.lookup(entry)
    if kernel and (module := _kept(kernel, digest, store)):
        return module
    kernel = ensure(entry, store, progress=progress)
    with store.locked(f"building {directory.name} for {entry.kernel_id}", progress):
        if module := _kept(kernel, digest, store):
            return module
        return _build(entry, kernel, directory, _place(kernel, digest, store), store, progress)


def _build(
    entry: KernelEntry,
    kernel: BuiltKernel,
    directory: Path,
    place: Path,
    store: Store,
    progress: Progress,
) -> Path:
    """Build a copy of the directory and let its module appear at its place."""
    tree, objects = _prepared(entry, kernel, store, progress)
    store.logs.mkdir(exist_ok=True)
    deadline = Deadline(MODULE_S, f"building the module {directory.name} for {entry.kernel_id}")
    log = store.logs / f"{kernel.key[:12]}-{directory.name}.log"
    kbuild = Kbuild(tree, objects.path, log, progress)
    with store.workspace("module") as work:
        copy = work / directory.name
        shutil.copytree(directory, copy)
        with SourceTrees(store, progress).patched(entry, tree):
            with objects.under_work():
                kbuild.prepare_modules()
            kbuild.module(copy, deadline)
        modules = sorted(copy.rglob("*.ko"))
        if len(modules) != 1:
            found = ", ".join(module.name for module in modules) or "no module"
            raise BuildFailed(deadline.what, log, [f"it made {found}"])
        kept = work / "kept"
        kept.mkdir()
        module = modules[0].rename(kept / modules[0].name)
        sync(module)
        place.parent.mkdir(parents=True, exist_ok=True)
        kept.rename(place)
        sync(place.parent)
    return place / module.name


def _prepared(
    entry: KernelEntry, kernel: BuiltKernel, store: Store, progress: Progress
) -> tuple[Path, ObjectsDirectory]:
    """The source tree and the objects of exactly that kernel, made again if they are not there."""
    recipe = store.recipe(kernel)
    exact = replace(entry, revision=recipe.revision)
    workshop = HostWorkshop(store, progress)
    toolset = workshop.prepare(exact, recipe.revision)
    if toolset.revision != recipe.revision:
        raise UserMistake(
            f"{entry.source} was edited after {entry.kernel_id} was built", "run it again"
        )
    tree = SourceTrees(store, progress).path(entry.source, recipe.revision)
    objects = ObjectsDirectory.of(entry, recipe, tree, store)
    same = objects.built and digest_of(objects.configuration) == kernel.config_sha256
    if entry.source.kind == TREE:
        same = same and objects.holds(recipe)
    if not same or not tree.is_dir():
        workshop.make(exact, recipe)
    return tree, objects


def _digest(directory: Path) -> str:
    """sha256 over names and contents of a module's files.  Raises UserMistake for no module."""
    if not any((directory / name).is_file() for name in _RECIPES):
        raise UserMistake(
            f"{directory} is no directory of a module: it has no {' or '.join(_RECIPES)}",
            "write obj-m := NAME.o into a Kbuild file there",
        )
    files = sorted(file for file in directory.rglob("*") if file.is_file())
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(directory)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _place(kernel: BuiltKernel, digest: str, store: Store) -> Path:
    return store.modules / kernel.key / digest


def _kept(kernel: BuiltKernel, digest: str, store: Store) -> Path | None:
    """The module if it was built before; it appeared whole, with its directory."""
    return next(_place(kernel, digest, store).glob("*.ko"), None)
