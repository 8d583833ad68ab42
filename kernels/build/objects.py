"""kbuild's output directories: one per source tree, compiler, and kernel as it was asked for."""

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

# Present while make is at work in an objects directory, gone when it ended by itself.  A compiler
# that was killed can leave half an object that is newer than its source, which make trusts.
_UNFINISHED = ".unfinished"
# A file of these changes objects and never what olddefconfig makes of a configuration.
_COMPILED = {".c", ".h", ".S"}
_CONFIGURING = "scripts/"


@dataclass(frozen=True, slots=True)
class ObjectsDirectory:
    """What kbuild made of one tree with one compiler for one entry and what was added to it.

    An edited configuration reuses it: kbuild itself tracks, per object, the options and the
    command line that it depends on.  So does an edited patch (kernels.store.last_build).  Entries
    do not share one: an option that linux/sched.h looks at, as CONFIG_USER_EVENTS is, changes
    nearly every object.
    """

    path: Path

    @classmethod
    def of(cls, entry: KernelEntry, recipe: Recipe, tree: Path, store: Store) -> ObjectsDirectory:
        """The directory of a recipe; it need not exist."""
        compiler = hashlib.sha256(recipe.compiler.encode()).hexdigest()[:12]
        return cls(store.objects / f"{tree.name}_{compiler}" / entry.objects_name)

    @property
    def configuration(self) -> Path:
        """The .config that it is configured with."""
        return self.path / ".config"

    @property
    def image(self) -> Path:
        """The bzImage."""
        return self.path / IMAGE_IN_OBJECTS

    @property
    def release(self) -> str:
        """What `uname -r` will say."""
        return (self.path / "include/config/kernel.release").read_text(encoding="utf-8").strip()

    @property
    def last(self) -> LastBuild | None:
        """What was made here last; None where nothing was, or not everything is known."""
        return None if self._mark.exists() else LastBuild.read(self.path)

    def holds(self, key: str) -> bool:
        """Whether these are the objects of the kernel of that key."""
        last = self.last
        return last is not None and last.key == key

    @property
    def _mark(self) -> Path:
        return self.path / _UNFINISHED

    def configured(self, wanted: Sequence[str], differing: Collection[str]) -> bool:
        """Whether configuring anew, after these files changed, would change nothing."""
        last = self.last
        return (
            last is not None
            and last.wanted == tuple(wanted)
            and self.configuration.is_file()
            and digest_of(self.configuration) == last.config
            and all(map(_is_only_compiled, differing))
        )

    def open(self, recipe: Recipe, store: Store, progress: Progress) -> str | None:
        """Make it ready for make: emptied if left in the middle, seeded if new and patched.

        Returns what the objects are those of, for people; None if there are none.
        """
        if self.path.exists() and self.last is None:
            self._bury(store)
        if self.path.exists():
            return "the last build"
        seed = _seed(self, recipe, store, progress) if recipe.patches else None
        self.path.mkdir(parents=True, exist_ok=True)
        return None if seed is None else f"the objects of {seed}"

    def _bury(self, store: Store) -> None:
        """Remove it, moved first: what a killed make's last compiler still writes goes with it."""
        with store.workspace("objects") as grave:
            self.path.rename(grave / "objects")

    @contextmanager
    def under_work(self) -> Iterator[None]:
        """Trust nothing in here unless make ends, well or by itself: it removes what is half."""
        self._mark.touch()
        try:
            yield
        except KernelTrouble:
            self._mark.unlink()
            raise
        self._mark.unlink()

    @contextmanager
    def making(self, recipe: Recipe, patched: Patched) -> Iterator[None]:
        """Remember what is made in here."""
        before = self.last or LastBuild()
        # Where make gives up, some objects are made from what differs and some are not.
        begun = {**before.patched, **patched.files}
        begun |= {file: Seen(UNKNOWN) for file in patched.differing}
        LastBuild("", before.wanted, before.config, begun).write(self.path)
        with self.under_work():
            yield
            config = digest_of(self.configuration)
            LastBuild(recipe.key, recipe.wanted, config, patched.files).write(self.path)


def _is_only_compiled(file: str) -> bool:
    return Path(file).suffix in _COMPILED and not file.startswith(_CONFIGURING)


def _seed(fresh: ObjectsDirectory, recipe: Recipe, store: Store, progress: Progress) -> str | None:
    """Begin with the objects of the same kernel without patches, if it was built here.

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
            return None  # a build from scratch says better what is wrong, if anything still is
        _rename_in_tools(copy / "tools", base.path, fresh.path)
        copy.rename(fresh.path)
    return base.path.name


def _base_of(fresh: ObjectsDirectory, recipe: Recipe, store: Store) -> ObjectsDirectory | None:
    """A finished sibling with the configuration of this recipe, patched like it if need be."""
    if not fresh.path.parent.is_dir():
        return None
    found = []
    for path in sorted(fresh.path.parent.iterdir()):
        last = ObjectsDirectory(path).last
        if last is not None and last.key and last.wanted == recipe.wanted:
            # That of another patch will do, but none is better.
            found.append((len(last.patched), path.name))
    return ObjectsDirectory(fresh.path.parent / min(found)[1]) if found else None


def _rename_in_tools(tools: Path, old: Path, new: Path) -> None:
    """Let the host programs' dependency files say where they are now.

    Kernel objects are named relative to the directory; those of tools/ absolutely, and were
    objtool made again, so would be every object that it has checked.
    """
    for file in tools.rglob(".*"):
        if file.suffix in (".cmd", ".d") and str(old) in (text := file.read_text("utf-8")):
            file.write_text(text.replace(f"{old}/", f"{new}/"), encoding="utf-8")
