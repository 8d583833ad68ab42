"""Build a kernel: `ensure` returns the image of a catalog entry, and builds it if necessary."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from host import packages
from host.progress import Progress, Step, silent
from host.text import counted, first
from kernels.build import module_abi
from kernels.build.kbuild import Kbuild
from kernels.build.objects import ObjectsDirectory
from kernels.catalog.entries import TREE, KernelEntry
from kernels.errors import BuildFailed, KernelsError, StoreUnusable
from kernels.patches import applying
from kernels.patches.coccinelle import TOOL
from kernels.sources import apt
from kernels.sources.offers import Offer
from kernels.sources.unpacked import SourceTrees, tools_for
from kernels.store.built_kernel import BuiltKernel, Product, Recipe
from kernels.store.store import Store
from kernels.tools.toolchain import Toolchain, require

# What kbuild needs, and what runs it.
BUILD_TOOLS = (
    *("bc", "bison", "flex", "gcc", "gelf.h", "gzip", "ld", "openssl/evp.h", "stdio.h"),
    *("make", "setpriv"),
)
# The name of the lock under which sources are looked for, fetched and unpacked.
FETCHING = "sources"
# How many changed files and options are named.
_NAMED = 3


def ensure(
    entry: KernelEntry,
    store: Store,
    *,
    progress: Progress = silent,
    refresh: bool = False,
) -> BuiltKernel:
    """The kernel of an entry, from the store or built now.

    The source's revision is resolved at the first build and remembered; `refresh` resolves it
    again.  Safe to call from several processes: one builds, the others wait.
    Raises any `KernelsError`.
    """
    if not refresh and (kernel := store.lookup(entry)):
        store.used(kernel.image.parent)
        return kernel
    revision = None if refresh else store.remembered_revision(entry)
    shop = Workshop(store, progress)
    shop.check(entry, revision)
    what = f"building {entry.kernel_id}"
    with ExitStack() as locks:
        if entry.source.kind == TREE:
            # All builds of a user's tree share one copy.
            locks.enter_context(store.lock(entry.source.package, what, progress))
        chosen = shop.choose(entry, revision)
        if entry.source.kind == TREE:
            # The tree may have been edited while this process waited: build what was read now.
            entry = replace(entry, revision=chosen)
        toolchain = Toolchain.of_host()
        recipe = Recipe(
            package=entry.source.package,
            revision=chosen,
            wanted=entry.wanted,
            patches=entry.patches_digest,
            compiler=toolchain.version,
            make=entry.make,
        )
        objects = objects_of(entry, recipe, store)
        locks.enter_context(store.lock(objects.lock_name, what, progress))
        if store.load(entry, recipe.key) is None:
            try:
                store.publish(recipe, shop.make(entry, recipe))
            except KeyboardInterrupt:
                progress(Step(objects.kept(entry.kernel_id)))
                raise
        store.remember(entry, recipe, toolchain.stamp)
        kernel = store.load(entry, recipe.key)
        if kernel is None:
            raise StoreUnusable(store.root, f"{entry.kernel_id} vanished during publication")
        return kernel


def tree_of(entry: KernelEntry, recipe: Recipe, store: Store) -> Path:
    """The source tree of a recipe without its patches; it need not exist."""
    return SourceTrees(store, silent).path(entry.source, recipe.revision)


def objects_of(entry: KernelEntry, recipe: Recipe, store: Store) -> ObjectsDirectory:
    """The objects directory of a recipe; it need not exist."""
    return ObjectsDirectory.of(entry, recipe, tree_of(entry, recipe, store), store)


def needed_tools(entry: KernelEntry, *, at_hand: bool) -> tuple[str, ...]:
    """The tools to build an entry; `at_hand`: its source tree is in the store."""
    obtaining = () if at_hand else tools_for(entry.source)
    patching = ("patch",) if entry.patches else ()
    semantic = (TOOL,) if any(patch.semantic for patch in entry.patches) else ()
    return (*BUILD_TOOLS, *obtaining, *patching, *semantic)


def reason(kernel_id: str, since: str, files: Sequence[str], options: Sequence[str]) -> str:
    """Why an incremental build compiled objects.

    As in "6.12+fix: 1 file differs from the last build (kernel/fork.c)".
    """
    if not (files or options):
        return f"{kernel_id}: nothing differs from {since}"
    groups = [(noun, names) for noun, names in (("file", files), ("option", options)) if names]
    counts = [counted(len(names), noun) for noun, names in groups]
    verb = "differs" if len(files) + len(options) == 1 else "differ"
    named = "; ".join(", ".join(first(names, _NAMED)) for _, names in groups)
    return f"{kernel_id}: {' and '.join(counts)} {verb} from {since} ({named})"


class Workshop:
    """Builds with the host's compiler, out of tree, in the store."""

    def __init__(self, store: Store, progress: Progress) -> None:
        self._store = store
        self._progress = progress
        self._trees = SourceTrees(store, progress)
        self._offers: dict[str, Offer] = {}

    def check(self, entry: KernelEntry, revision: str | None) -> None:
        """Refuse, before anything is locked, what this host or the user's patches make impossible.

        `revision` is that of the last build, if any.
        Raises MissingTool, SourceUnavailable, PatchRefused, BrokenFile.
        """
        tree = revision and self._trees.path(entry.source, revision)
        at_hand = bool(tree and tree.is_dir())
        needed = needed_tools(entry, at_hand=at_hand)
        if "apt-cache" in needed and packages.missing(["apt-cache"]):
            raise apt.no_apt(entry.source)
        # Name all missing tools at once.
        require(needed)
        if entry.source.kind == TREE:
            # Of a commit there are no files yet.
            tree, at_hand = entry.source.tree, entry.source.ref is None
        if tree and at_hand and entry.patches:
            applying.check(entry.patches, tree, self._store)

    def choose(self, entry: KernelEntry, revision: str | None) -> str:
        """The revision to build: `revision` if its tree is in the store.

        The copy of a user's tree is updated.  Raises SourceUnavailable, UnknownRevision.
        """
        if entry.source.kind == TREE:
            return self._trees.copy_of(entry.source).follow(entry.needs.tree_mib)
        if revision and self._trees.path(entry.source, revision).is_dir():
            return revision
        with self._store.lock(FETCHING, f"looking for {entry.source}", self._progress):
            offer = self._trees.resolve(entry)
        self._offers[offer.version] = offer
        return offer.version

    def make(self, entry: KernelEntry, recipe: Recipe) -> Product:
        """Build the kernel of a recipe; its objects directory is locked.

        Raises StoreFull, SourceUnavailable, BuildFailed, LostOptions.
        """
        base = tree_of(entry, recipe, self._store)
        if recipe.revision in self._offers:
            with self._store.lock(FETCHING, f"fetching {entry.source}", self._progress):
                base = self._trees.obtain(entry, self._offers[recipe.revision])
        self._store.require_space(entry.needs.objects_mib, f"building {entry.kernel_id}")
        self._store.logs.mkdir(exist_ok=True)
        objects = objects_of(entry, recipe, self._store)
        if entry.patches and not objects.path.exists():
            # Find a broken patch before objects are copied.
            applying.check(entry.patches, base, self._store)
        self._store.used(base)
        seed = objects.open(entry, recipe, base, self._store, self._progress)
        interface = self._compile(entry, recipe, objects.tree(entry, base), objects, seed)
        kept = tuple(objects.path / name for name in entry.keep)
        return Product(objects.release, objects.image, objects.configuration, interface, kept)

    def _compile(
        self,
        entry: KernelEntry,
        recipe: Recipe,
        tree: Path,
        objects: ObjectsDirectory,
        seed: str | None,
    ) -> str:
        """Configure and compile the patched tree; returns the digest of what modules see."""
        # Before patches are applied: the Makefile's time goes into the image.
        kbuild = Kbuild(
            tree,
            objects.path,
            self._store.logs / f"{recipe.key}.log",
            self._progress,
            words=recipe.make,
            links=self._store.ccache,
        )
        before = objects.last_patched
        edited = self._edited(entry, recipe, objects)
        with applying.applied(entry.patches, tree, self._store, before) as patched:
            differing = None
            if edited is not None:
                differing = tuple(dict.fromkeys((*edited, *patched.differing)))
            settled = differing is not None and objects.configured(recipe.wanted, differing)
            with objects.recording(recipe, tree, patched):
                try:
                    options = () if settled else kbuild.configure(recipe.wanted)
                    why = ""
                    if seed is not None and differing is not None:
                        why = reason(entry.kernel_id, seed, differing, options)
                    kbuild.build(entry, why, differing, options)
                except BuildFailed as error:
                    raise self._blame(error, entry) from error
            return module_abi.digest(
                objects, recipe, patched.files, self._source(entry, recipe, objects)
            )

    def _edited(
        self, entry: KernelEntry, recipe: Recipe, objects: ObjectsDirectory
    ) -> tuple[str, ...] | None:
        """The files of a user's tree that differ from the last build's; None if unknown."""
        if entry.source.kind != TREE:
            return ()
        last = objects.last
        if last is None or not last.revision:
            return None
        return self._trees.copy_of(entry.source).changed(last.revision, recipe.revision)

    def _source(self, entry: KernelEntry, recipe: Recipe, objects: ObjectsDirectory) -> str:
        """Identify the source that modules see: edits inside the kernel do not change it."""
        if entry.source.kind != TREE:
            return recipe.revision
        inside = partial(module_abi.inside, objects=str(objects.path))
        return self._trees.copy_of(entry.source).digest_without(recipe.revision, inside)

    def _blame(self, error: BuildFailed, entry: KernelEntry) -> KernelsError:
        """StoreFull if the disk filled up, else the error itself."""
        if "No space left on device" in error.log.read_text(errors="replace"):
            return self._store.full(f"building {entry.kernel_id}")
        return error
