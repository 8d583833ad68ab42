"""kbuild's output directories: one per source tree, compiler and requested kernel."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from host.arch import IMAGE_IN_OBJECTS
from host.deadline import Deadline
from host.files import digest_of
from host.progress import Progress, ticking
from host.text import counted
from kernels.build.stale_objects import compiled_objects
from kernels.build.views import make_view, replace_paths
from kernels.catalog.entries import TREE, KernelEntry
from kernels.errors import KernelTrouble, StoreBusy
from kernels.patches.applying import Patched
from kernels.store.built_kernel import Recipe
from kernels.store.last_build import FILE, UNKNOWN, UNRECORDED, LastBuild, Seen
from kernels.store.store import Store
from kernels.tools import child_process

COPY_S = 900.0
# How long to wait for the objects of another kernel; a build from scratch takes minutes.
SEED_WAIT_S = 60.0

# Present while make runs.  A killed compiler can leave half an object that is newer than its
# source, and make would trust it.
_UNFINISHED = ".unfinished"
# Files with these suffixes change objects, but never the result of olddefconfig.
_COMPILED = {".c", ".h", ".S"}
_CONFIGURING = "scripts/"


class ObjectsDirectory(Struct, frozen=True):
    """The objects of one tree, one compiler, and one entry with its additions.

    An edited configuration reuses them: kbuild tracks options and command line per object.  So does
    an edited patch (kernels.store.last_build).  Entries do not share a directory: an option such as
    CONFIG_USER_EVENTS, which linux/sched.h tests, changes nearly every object.
    """

    path: Path
    view: Path

    @classmethod
    def of(cls, entry: KernelEntry, recipe: Recipe, tree: Path, store: Store) -> ObjectsDirectory:
        """The directory of a recipe; it need not exist."""
        compiler = hashlib.sha256(recipe.compiler.encode()).hexdigest()[:12]
        name = f"{tree.name}_{compiler}/{entry.objects_name}"
        return cls(store.objects / name, store.views / name)

    def tree(self, entry: KernelEntry, base: Path) -> Path:
        """The tree that it is built from: a view of the release's, once it has been patched.

        The copy of a user's tree has a lock of its own.
        """
        own = entry.source.kind != TREE and (entry.patches or self.view.is_dir())
        return self.view if own else base

    @property
    def lock_name(self) -> str:
        """The name of its lock."""
        return f"{self.path.parent.name}_{self.path.name}"

    @property
    def configuration(self) -> Path:
        """Its .config."""
        return self.path / ".config"

    @property
    def image(self) -> Path:
        """The bootable image."""
        return self.path / IMAGE_IN_OBJECTS

    @property
    def release(self) -> str:
        """The release (`uname -r`)."""
        return (self.path / "include/config/kernel.release").read_text(encoding="utf-8").strip()

    def kept(self, kernel_id: str) -> str:
        """What remains of an interrupted build, for people."""
        if self.last is None:
            return f"interrupted; objects of {kernel_id} may be incomplete, and are built again"
        objects = counted(compiled_objects(self.path), "object")
        return f"interrupted; the next build of {kernel_id} goes on with the {objects} compiled"

    @property
    def last(self) -> LastBuild | None:
        """The last complete build in this directory that make can go on with, or None."""
        return None if self._mark.exists() or self._of_the_future else LastBuild.read(self.path)

    @property
    def _of_the_future(self) -> bool:
        """Whether the clock was set back: objects are newer than what is edited from now on."""
        with suppress(FileNotFoundError):
            return (self.path / FILE).stat().st_mtime > time.time()
        return False

    @property
    def last_patched(self) -> Mapping[str, Seen]:
        """The patched files that the objects were built from."""
        return self.last.patched if self.last is not None else {}

    def holds(self, key: str) -> bool:
        """Whether these are the objects of the kernel with that key."""
        last = self.last
        return last is not None and last.key == key

    @property
    def _mark(self) -> Path:
        return self.path / _UNFINISHED

    def configured(self, wanted: Sequence[str], differing: Collection[str]) -> bool:
        """Whether configuring again, after these files changed, would change nothing."""
        last = self.last
        return (
            last is not None
            and last.wanted == tuple(wanted)
            and self.configuration.is_file()
            and digest_of(self.configuration) == last.config
            and all(map(_is_only_compiled, differing))
        )

    def open(
        self, entry: KernelEntry, recipe: Recipe, base: Path, store: Store, progress: Progress
    ) -> str | None:
        """Prepare for make: empty a directory of a killed build, seed a new one if patched.

        `base` is the source tree without patches.  Returns the origin of the objects, for people;
        None if there are none.
        """
        tree = self.tree(entry, base)
        if tree == self.view and not tree.is_dir():
            make_view(base, tree, store, progress)
        if self.path.exists() and (self.last is None or self._is_behind(recipe)):
            self._discard(store)
        if self.last is not None:
            _adjust(self.path, self.path, self.path, base, tree)
            return "the last build"
        seed = self._seeded(recipe, base, tree, store, progress) if recipe.patches else None
        self.path.mkdir(parents=True, exist_ok=True)
        return None if seed is None else f"the objects of {seed}"

    def _is_behind(self, recipe: Recipe) -> bool:
        """Whether a sibling of a patched kernel has its configuration, and its objects have not."""
        last = self.last
        return bool(
            recipe.patches
            and last is not None
            and last.wanted != recipe.wanted
            and self._sibling(recipe) is not None
        )

    def _seeded(
        self, recipe: Recipe, base: Path, tree: Path, store: Store, progress: Progress
    ) -> str | None:
        """Copy the objects of the same kernel without patches, if it was built here.

        Returns its name.
        """
        other = self._sibling(recipe)
        if other is None:
            return None
        deadline = Deadline(COPY_S, f"copying the objects of {other.path.name}")
        with ExitStack() as stack:
            try:
                stack.enter_context(
                    store.lock(other.lock_name, deadline.what, progress, wait_s=SEED_WAIT_S)
                )
            except StoreBusy:
                return None
            if other.last is None:
                return None
            copy = stack.enter_context(store.workspace()) / "objects"
            argv = ["cp", "-a", "--reflink=auto", str(other.path), str(copy)]
            if child_process.run(argv, deadline=deadline, on_tick=ticking(progress, deadline)):
                return None  # a build from scratch reports the cause better
            _adjust(copy, other.path, self.path, base, tree)
            copy.rename(self.path)
        return other.path.name

    def _sibling(self, recipe: Recipe) -> ObjectsDirectory | None:
        """A finished sibling with this configuration, patched as little as possible."""
        if not self.path.parent.is_dir():
            return None
        found = []
        for path in self.path.parent.iterdir():
            each = ObjectsDirectory(path, self.view.with_name(path.name))
            last = each.last
            if last is not None and last.key and last.wanted == recipe.wanted:
                found.append((len(last.patched), path.name, each))
        return min(found)[2] if found else None

    def _discard(self, store: Store) -> None:
        """Remove it, moved first: a killed compiler may still write into it."""
        with store.workspace() as trash:
            self.path.rename(trash / "objects")

    @contextmanager
    def incomplete(self) -> Iterator[None]:
        """Mark the directory as incomplete unless make ends by itself, also after Ctrl-C: it then
        removes partial files.
        """
        self._mark.touch()
        try:
            yield
        except (KernelTrouble, child_process.Interrupted):
            self._mark.unlink()
            raise
        self._mark.unlink()

    @contextmanager
    def recording(self, recipe: Recipe, tree: Path, patched: Patched) -> Iterator[None]:
        """Record what is built from a tree meanwhile."""
        before = replace(self.last or UNRECORDED, tree=str(tree), objects=str(self.path))
        # If make fails, only some objects are built from the differing files.
        begun = {**before.patched, **patched.files}
        begun |= {file: Seen(UNKNOWN) for file in patched.differing}
        replace(before, key="", patched=begun).write(self.path)
        with self.incomplete():
            yield
            config = digest_of(self.configuration)
            last = replace(
                before,
                key=recipe.key,
                wanted=recipe.wanted,
                config=config,
                patched=patched.files,
                revision=recipe.revision,
            )
            last.write(self.path)


def _is_only_compiled(file: str) -> bool:
    return Path(file).suffix in _COMPILED and not file.startswith(_CONFIGURING)


def _adjust(directory: Path, was: Path, now: Path, base: Path, tree: Path) -> None:
    """Adjust objects that were built in the directory `was`, or from another tree, for `now`."""
    last = LastBuild.read(directory) or UNRECORDED
    # A record without paths is of a store that was not moved and built everything from `base`.
    paths = {Path(last.tree or base): tree, Path(last.objects or was): now}
    replace_paths(directory, paths)
    replace(last, tree=str(tree), objects=str(now)).write(directory)
