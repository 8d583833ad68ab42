"""kbuild's output directories: one per source tree, compiler and requested kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from host.arch import IMAGE_IN_OBJECTS
from host.deadline import Deadline
from host.files import digest_of
from host.progress import Progress, ticking
from kernels.catalog.entries import KernelEntry
from kernels.errors import KernelTrouble
from kernels.patches.applying import Patched
from kernels.store.built_kernel import Recipe
from kernels.store.last_build import UNKNOWN, LastBuild, Seen
from kernels.store.store import Store
from kernels.tools import child_process

COPY_S = 900.0

# Present while make runs.  A killed compiler can leave half an object that is newer than its
# source, and make would trust it.
_UNFINISHED = ".unfinished"
# Files with these suffixes change objects, but never the result of olddefconfig.
_COMPILED = {".c", ".h", ".S"}
_CONFIGURING = "scripts/"


@dataclass(frozen=True, slots=True)
class ObjectsDirectory:
    """The objects of one tree, one compiler, and one entry with its additions.

    An edited configuration reuses them: kbuild tracks options and command line per object.  So does
    an edited patch (kernels.store.last_build).  Entries do not share a directory: an option such as
    CONFIG_USER_EVENTS, which linux/sched.h tests, changes nearly every object.
    """

    path: Path

    @classmethod
    def of(cls, entry: KernelEntry, recipe: Recipe, tree: Path, store: Store) -> ObjectsDirectory:
        """The directory of a recipe; it need not exist."""
        compiler = hashlib.sha256(recipe.compiler.encode()).hexdigest()[:12]
        return cls(store.objects / f"{tree.name}_{compiler}" / entry.objects_name)

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

    @property
    def last(self) -> LastBuild | None:
        """The last complete build in this directory; None if there is none."""
        return None if self._mark.exists() else LastBuild.read(self.path)

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

    def open(self, recipe: Recipe, store: Store, progress: Progress) -> str | None:
        """Prepare for make: empty a directory of an interrupted build, seed a new one if patched.

        Returns the origin of the objects, for people; None if there are none.
        """
        if self.path.exists() and self.last is None:
            self._discard(store)
        if self.path.exists():
            return "the last build"
        seed = _seed(self, recipe, store, progress) if recipe.patches else None
        self.path.mkdir(parents=True, exist_ok=True)
        return None if seed is None else f"the objects of {seed}"

    def _discard(self, store: Store) -> None:
        """Remove it, moved first: a killed compiler may still write into it."""
        with store.workspace("objects") as trash:
            self.path.rename(trash / "objects")

    @contextmanager
    def incomplete(self) -> Iterator[None]:
        """Mark the directory as incomplete unless make ends by itself: it then removes partial
        files.
        """
        self._mark.touch()
        try:
            yield
        except KernelTrouble:
            self._mark.unlink()
            raise
        self._mark.unlink()

    @contextmanager
    def recording(self, recipe: Recipe, patched: Patched) -> Iterator[None]:
        """Record what is built meanwhile."""
        before = self.last or LastBuild()
        # If make fails, only some objects are built from the differing files.
        begun = {**before.patched, **patched.files}
        begun |= {file: Seen(UNKNOWN) for file in patched.differing}
        LastBuild("", before.wanted, before.config, begun).write(self.path)
        with self.incomplete():
            yield
            config = digest_of(self.configuration)
            LastBuild(recipe.key, recipe.wanted, config, patched.files).write(self.path)


def _is_only_compiled(file: str) -> bool:
    return Path(file).suffix in _COMPILED and not file.startswith(_CONFIGURING)


def _seed(fresh: ObjectsDirectory, recipe: Recipe, store: Store, progress: Progress) -> str | None:
    """Copy the objects of the same kernel without patches, if it was built here.

    Returns its name.
    """
    base = _base_of(fresh, recipe, store)
    if base is None:
        return None
    deadline = Deadline(COPY_S, f"copying the objects of {base.path.name}")
    with store.workspace("seed") as work:
        copy = work / "objects"
        argv = ["cp", "-a", "--reflink=auto", str(base.path), str(copy)]
        if child_process.run(argv, deadline=deadline, on_tick=ticking(progress, deadline)):
            return None  # a build from scratch reports the cause better
        _rename_in_tools(copy / "tools", base.path, fresh.path)
        copy.rename(fresh.path)
    return base.path.name


def _base_of(fresh: ObjectsDirectory, recipe: Recipe, store: Store) -> ObjectsDirectory | None:
    """A finished sibling with this configuration, patched as little as possible."""
    if not fresh.path.parent.is_dir():
        return None
    found = []
    for path in sorted(fresh.path.parent.iterdir()):
        last = ObjectsDirectory(path).last
        if last is not None and last.key and last.wanted == recipe.wanted:
            # A patched one serves, an unpatched one is better.
            found.append((len(last.patched), path.name))
    return ObjectsDirectory(fresh.path.parent / min(found)[1]) if found else None


def _rename_in_tools(tools: Path, old: Path, new: Path) -> None:
    """Adjust the absolute paths in the dependency files of host programs.

    Paths of kernel objects are relative; those of tools/ are absolute, and rebuilding objtool would
    rebuild every object that it has checked.
    """
    for file in tools.rglob(".*"):
        if file.suffix in (".cmd", ".d") and str(old) in (text := file.read_text("utf-8")):
            file.write_text(text.replace(f"{old}/", f"{new}/"), encoding="utf-8")
