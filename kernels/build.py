"""Building a kernel: `ensure` gives the image of a catalog entry, making it when need be."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernels import child, config, tools
from kernels.catalog import KernelEntry
from kernels.deadline import Deadline
from kernels.errors import BuildFailed, KernelsError, LostOptions, StoreFull, StoreUnusable
from kernels.progress import Progress, Step, silent
from kernels.sources import SOURCE_TOOLS, Offer, SourceTrees
from kernels.store import BuiltKernel, Product, Recipe, Store
from kernels.tools import Toolchain

# What this module itself runs; what a kernel's build runs is the catalog's to say.
BUILD_TOOLS = ("make", "setpriv")
CONFIGURE_S = 900.0
BUILD_S = 4 * 3600.0
TAIL_LINES = 15
# Compiling takes longest, but a step per object would only flicker.
PROGRESS_S = 1.0

# A line of kbuild's short output about an object compiled: "  CC      kernel/fork.o".
_COMPILED = re.compile(r"  (?:CC|AS|HOSTCC) +\S+")
# Present while an objects directory is being worked on, gone when make ended well.  A compiler
# that was killed can leave half an object that is newer than its source, which make trusts.
_UNFINISHED = ".unfinished"


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


class HostWorkshop:
    """Builds with this machine's compiler, out of tree, below the store."""

    def __init__(self, store: Store, progress: Progress) -> None:
        self._store = store
        self._progress = progress
        self._trees = SourceTrees(store, progress)
        self._offers: dict[str, Offer] = {}

    def prepare(self, entry: KernelEntry, revision: str | None) -> Toolset:
        """See Workshop.  Raises MissingTool, SourceUnavailable, UnknownRevision."""
        package, patches = entry.source.package, entry.patches_digest
        at_hand = revision and self._trees.path(package, revision, patches).is_dir()
        # All at once: nobody wants to install, try again and install some more.
        obtaining = () if at_hand else SOURCE_TOOLS
        patching = ("patch",) if entry.patches else ()
        tools.require((*BUILD_TOOLS, *obtaining, *patching, *entry.needs.tools))
        toolchain = tools.toolchain()
        if revision and at_hand:
            return Toolset(revision, toolchain)
        offer = self._trees.resolve(entry)
        self._offers[offer.version] = offer
        return Toolset(offer.version, toolchain)

    def make(self, entry: KernelEntry, recipe: Recipe) -> Product:
        """See Workshop.  Raises StoreFull, SourceUnavailable, BuildFailed, LostOptions."""
        tree = self._trees.path(recipe.package, recipe.revision, recipe.patches)
        if recipe.revision in self._offers:
            tree = self._trees.obtain(entry, self._offers[recipe.revision])
        self._store.require_space(entry.needs.objects_mib, f"building {entry.kernel_id}")
        self._store.logs.mkdir(exist_ok=True)
        objects = self._objects(entry, tree, recipe)
        (objects / _UNFINISHED).touch()
        kbuild = _Kbuild(tree, objects, self._store.logs / f"{recipe.key}.log", self._progress)
        try:
            kbuild.configure(recipe.wanted)
            kbuild.build(entry)
        except BuildFailed as error:
            raise self._reason(error, entry) from error
        (objects / _UNFINISHED).unlink()
        return Product(
            release=(objects / "include/config/kernel.release").read_text().strip(),
            image=objects / "arch/x86/boot/bzImage",
            config=objects / ".config",
        )

    def _objects(self, entry: KernelEntry, tree: Path, recipe: Recipe) -> Path:
        """The output directory for a tree, compiler and entry, emptied if left in the middle.

        An edited configuration reuses it: kbuild itself tracks, per object, the options and
        the command line that it depends on.  Entries do not share one: an option that
        linux/sched.h looks at, as CONFIG_USER_EVENTS is, changes nearly every object.
        """
        compiler = hashlib.sha256(recipe.compiler.encode()).hexdigest()[:12]
        objects = self._store.objects / f"{tree.name}_{compiler}" / entry.name
        if (objects / _UNFINISHED).exists():
            # Moved first: what a killed make's last compiler still writes goes with it.
            with self._store.workspace("unfinished") as grave:
                objects.rename(grave / "objects")
        objects.mkdir(parents=True, exist_ok=True)
        return objects

    def _reason(self, error: BuildFailed, entry: KernelEntry) -> KernelsError:
        """A full disk breaks a build in many words; it is not the kernel's fault."""
        if "No space left on device" not in error.log.read_text(errors="replace"):
            return error
        available = shutil.disk_usage(self._store.root).free
        return StoreFull(self._store.root, f"building {entry.kernel_id}", None, available)


class _Kbuild:
    """make in one output directory, with its output in a log."""

    def __init__(self, tree: Path, objects: Path, log: Path, progress: Progress) -> None:
        self._tree = tree
        self._objects = objects
        self._log = log
        self._progress = progress
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._compiled: int | None = None  # objects; not counted while configuring
        self._told = float("-inf")
        log.write_bytes(b"")

    def configure(self, wanted: Sequence[str]) -> None:
        """tinyconfig, plus the wanted lines, through olddefconfig.  Raises LostOptions."""
        deadline = Deadline(CONFIGURE_S, "configuring the kernel")
        self._make("tinyconfig", deadline=deadline)
        with (self._objects / ".config").open("a", encoding="utf-8") as file:
            file.write("\n".join(wanted) + "\n")
        self._make("olddefconfig", deadline=deadline)
        resulting = (self._objects / ".config").read_text(encoding="utf-8")
        if lost := config.lost(wanted, resulting):
            raise LostOptions(lost)

    def build(self, entry: KernelEntry) -> None:
        """bzImage, with every processor we may use."""
        fresh = not (self._objects / "vmlinux").exists()
        expected = entry.needs.objects if fresh else None
        deadline = Deadline(BUILD_S, f"compiling {entry.kernel_id}")
        self._compiled = 0
        jobs = len(os.sched_getaffinity(0))
        self._make(f"-j{jobs}", "bzImage", deadline=deadline, expected=expected)
        self._tell(deadline, expected, passing=False)

    def _make(self, *targets: str, deadline: Deadline, expected: int | None = None) -> None:
        def line(text: str) -> None:
            self._tail.append(text)
            if self._compiled is not None and _COMPILED.match(text):
                self._compiled += 1

        def tick() -> None:
            if time.monotonic() - self._told >= PROGRESS_S:
                self._tell(deadline, expected, passing=True)

        with self._log.open("ab", buffering=0) as log:
            status = child.run(
                ["make", "-C", str(self._tree), f"O={self._objects}", *targets],
                # The compiler's temporary files as well: one file system to be full.
                env=child.environment(**self._identity(), TMPDIR=str(self._objects)),
                deadline=deadline,
                log=log,
                on_line=line,
                on_tick=tick,
            )
        if status:
            raise BuildFailed(deadline.what, self._log, tuple(self._tail))

    def _identity(self) -> dict[str, str]:
        """What kbuild would otherwise take from the clock and the user: same recipe, same image."""
        when = time.gmtime((self._tree / "Makefile").stat().st_mtime)
        return {
            "ARCH": "x86_64",
            "KBUILD_BUILD_TIMESTAMP": time.strftime("%a %b %e %H:%M:%S UTC %Y", when),
            "KBUILD_BUILD_USER": "uevt",
            "KBUILD_BUILD_HOST": "uevt",
            "KBUILD_BUILD_VERSION": "1",
        }

    def _tell(self, deadline: Deadline, expected: int | None, *, passing: bool) -> None:
        self._told = time.monotonic()
        self._progress(
            Step(
                deadline.what,
                elapsed_s=deadline.elapsed,
                done=self._compiled,
                expected=expected,
                passing=passing,
            )
        )
