"""Building a kernel: `ensure` gives the image of a catalog entry, making it when need be."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import Protocol

from kernels import tools
from kernels.catalog import TREE, KernelEntry
from kernels.errors import BuildFailed, KernelsError, StoreFull, StoreUnusable
from kernels.kbuild import Kbuild
from kernels.objects import ObjectsDirectory
from kernels.offers import Offer
from kernels.progress import Progress, silent
from kernels.sources import SourceTrees, tools_for
from kernels.store import BuiltKernel, Product, Recipe, Store
from kernels.tools import Toolchain

# What this module itself runs; what a kernel's build runs is the catalog's to say.
BUILD_TOOLS = ("make", "setpriv")


@dataclass(frozen=True, slots=True)
class Toolset:
    """A source revision and a compiler: with the entry, all that a recipe needs."""

    revision: str
    toolchain: Toolchain


class Workshop(Protocol):
    """Where kernels are made.  All calls come with the store locked."""

    def prepare(self, entry: KernelEntry, revision: str | None) -> Toolset:
        """Check the host and settle what to build from: `revision` if its source is at hand."""

    def make(self, entry: KernelEntry, recipe: Recipe) -> Product:
        """Make the kernel of a recipe."""


def ensure(
    entry: KernelEntry,
    store: Store,
    *,
    progress: Progress = silent,
    refresh: bool = False,
    workshop: Workshop | None = None,
) -> BuiltKernel:
    """The kernel of an entry from the store, built first where the store lacks it.

    The source's revision is resolved at the first build and remembered; `refresh` asks the
    package sources again.  Safe to call from several processes: one builds, the others wait.
    Raises any `KernelsError`.
    """
    if not refresh and (kernel := store.lookup(entry)):
        return kernel
    with store.locked(f"building {entry.kernel_id}", progress):
        if not refresh and (kernel := store.lookup(entry)):
            return kernel
        shop = workshop or HostWorkshop(store, progress)
        remembered = None if refresh else store.remembered_revision(entry)
        toolset = shop.prepare(entry, remembered)
        if entry.source.kind == TREE:
            # It may have been edited while we waited: what was read now is what is built.
            entry = replace(entry, revision=toolset.revision)
        recipe = Recipe(
            package=entry.source.package,
            revision=toolset.revision,
            wanted=entry.wanted,
            patches=entry.patches_digest,
            compiler=toolset.toolchain.version,
        )
        if store.load(entry, recipe.key) is None:
            store.publish(recipe, shop.make(entry, recipe))
        store.remember(entry, recipe, toolset.toolchain.stamp)
        kernel = store.load(entry, recipe.key)
        if kernel is None:
            raise StoreUnusable(store.root, f"{entry.kernel_id} vanished as it was finished")
        return kernel


def needed_tools(entry: KernelEntry, *, at_hand: bool) -> tuple[str, ...]:
    """What building an entry needs on the host, with its source tree at hand or not."""
    obtaining = () if at_hand else tools_for(entry.source)
    patching = ("patch",) if entry.patches else ()
    return (*BUILD_TOOLS, *obtaining, *patching, *entry.needs.tools)


class HostWorkshop:
    """Builds with this machine's compiler, out of tree, below the store."""

    def __init__(self, store: Store, progress: Progress) -> None:
        self._store = store
        self._progress = progress
        self._trees = SourceTrees(store, progress)
        self._offers: dict[str, Offer] = {}

    def prepare(self, entry: KernelEntry, revision: str | None) -> Toolset:
        """See Workshop.  Raises MissingTool, SourceUnavailable, UnknownRevision."""
        at_hand = revision and self._trees.path(entry.source, revision).is_dir()
        # All at once: nobody wants to install, try again and install some more.
        tools.require(needed_tools(entry, at_hand=bool(at_hand)))
        toolchain = tools.toolchain()
        if entry.source.kind == TREE:
            return Toolset(self._trees.follow(entry), toolchain)
        if revision and at_hand:
            return Toolset(revision, toolchain)
        offer = self._trees.resolve(entry)
        self._offers[offer.version] = offer
        return Toolset(offer.version, toolchain)

    def make(self, entry: KernelEntry, recipe: Recipe) -> Product:
        """See Workshop.  Raises StoreFull, SourceUnavailable, BuildFailed, LostOptions."""
        tree = self._trees.path(entry.source, recipe.revision)
        if recipe.revision in self._offers:
            tree = self._trees.obtain(entry, self._offers[recipe.revision])
        self._store.require_space(entry.needs.objects_mib, f"building {entry.kernel_id}")
        self._store.logs.mkdir(exist_ok=True)
        objects = ObjectsDirectory.of(entry, recipe, tree, self._store)
        objects.open(recipe, self._store, self._progress)
        kbuild = Kbuild(tree, objects.path, self._store.logs / f"{recipe.key}.log", self._progress)
        try:
            with objects.under_work(), self._trees.patched(entry, tree):
                kbuild.configure(recipe.wanted)
                kbuild.build(entry)
                objects.finish(recipe)
        except BuildFailed as error:
            raise self._reason(error, entry) from error
        return Product(objects.release, objects.image, objects.configuration)

    def _reason(self, error: BuildFailed, entry: KernelEntry) -> KernelsError:
        """A full disk breaks a build in many words; it is not the kernel's fault."""
        if "No space left on device" not in error.log.read_text(errors="replace"):
            return error
        available = shutil.disk_usage(self._store.root).free
        return StoreFull(self._store.root, f"building {entry.kernel_id}", None, available)
