"""kbuild's output directories: one per source tree, compiler, entry and set of patches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kernels import child
from kernels.catalog import KernelEntry
from kernels.deadline import Deadline
from kernels.files import digest_of
from kernels.progress import Progress, ticking
from kernels.store import Recipe, Store

COPY_S = 900.0

# Present while an objects directory is being worked on, gone when make ended well.  A compiler
# that was killed can leave half an object that is newer than its source, which make trusts.
_UNFINISHED = ".unfinished"
# The recipe's key.  A user's tree has one directory for all its contents.
_MADE = ".made"


@dataclass(frozen=True, slots=True)
class ObjectsDirectory:
    """What kbuild made of one tree with one compiler for one entry.

    An edited configuration reuses it: kbuild itself tracks, per object, the options and the
    command line that it depends on.  Entries do not share one: an option that linux/sched.h
    looks at, as CONFIG_USER_EVENTS is, changes nearly every object.  Nor do sets of patches:
    going back to a file that is older than its object would rebuild nothing.
    """

    path: Path

    @classmethod
    def of(cls, entry: KernelEntry, recipe: Recipe, tree: Path, store: Store) -> ObjectsDirectory:
        """The directory of a recipe; it need not exist."""
        compiler = hashlib.sha256(recipe.compiler.encode()).hexdigest()[:12]
        suffix = f"+{recipe.patches[:12]}" if recipe.patches else ""
        return cls(store.objects / f"{tree.name}_{compiler}" / f"{entry.objects_name}{suffix}")

    @property
    def configuration(self) -> Path:
        """The .config that it is configured with."""
        return self.path / ".config"

    @property
    def image(self) -> Path:
        """The bzImage."""
        return self.path / "arch/x86/boot/bzImage"

    @property
    def release(self) -> str:
        """What `uname -r` will say."""
        return (self.path / "include/config/kernel.release").read_text(encoding="utf-8").strip()

    @property
    def built(self) -> bool:
        """Whether a kernel was linked here and nothing was interrupted since."""
        return (self.path / "vmlinux").exists() and not self._mark.exists()

    def holds(self, recipe: Recipe) -> bool:
        """Whether the last kernel that was linked here is that of a recipe."""
        kept = self.path / _MADE
        return self.built and kept.is_file() and kept.read_text("utf-8") == recipe.key

    def finish(self, recipe: Recipe) -> None:
        """Say which recipe's kernel was linked here last."""
        (self.path / _MADE).write_text(recipe.key, encoding="utf-8")

    @property
    def _mark(self) -> Path:
        return self.path / _UNFINISHED

    def open(self, recipe: Recipe, store: Store, progress: Progress) -> None:
        """Make it ready for make: emptied if left in the middle, seeded if new and patched."""
        if self._mark.exists():
            self._bury(store)
        if recipe.patches and not self.path.exists():
            for outdated in self._of_other_patches():
                outdated._bury(store)
            _seed(self, recipe, store, progress)
        self.path.mkdir(parents=True, exist_ok=True)

    def _bury(self, store: Store) -> None:
        """Remove it, moved first: what a killed make's last compiler still writes goes with it."""
        with store.workspace("objects") as grave:
            self.path.rename(grave / "objects")

    def _of_other_patches(self) -> list[ObjectsDirectory]:
        """The directories of what this entry's patches were before they were edited."""
        entry, _, _ = self.path.name.partition("+")
        return [ObjectsDirectory(path) for path in self.path.parent.glob(f"{entry}+*")]

    @contextmanager
    def under_work(self) -> Iterator[None]:
        """Mark it as unfinished unless the work ends well."""
        self._mark.touch()
        yield
        self._mark.unlink()


def _seed(fresh: ObjectsDirectory, recipe: Recipe, store: Store, progress: Progress) -> None:
    """Begin with the objects of the same kernel without patches, if it was built here.

    Patched files are newer than those objects, so make rebuilds just what depends on them.
    """
    base = _base_of(fresh, recipe, store)
    if base is None:
        return
    deadline = Deadline(COPY_S, f"copying the objects of {base.path.name}")
    with store.workspace("seed") as work:
        copy = work / "objects"
        argv = ["cp", "-a", "--reflink=auto", str(base.path), str(copy)]
        if child.run(argv, deadline=deadline, on_tick=ticking(progress, deadline)):
            return  # a build from scratch says better what is wrong, if anything still is
        _rename_in_tools(copy / "tools", base.path, fresh.path)
        copy.rename(fresh.path)


def _base_of(fresh: ObjectsDirectory, recipe: Recipe, store: Store) -> ObjectsDirectory | None:
    """A finished sibling with the configuration of this recipe's kernel without patches."""
    wanted = store.configuration_of(replace(recipe, patches=""))
    if wanted is None or not fresh.path.parent.is_dir():
        return None
    for path in sorted(fresh.path.parent.iterdir()):
        base = ObjectsDirectory(path)
        if "+" not in path.name and base.built and digest_of(base.configuration) == wanted:
            return base
    return None


def _rename_in_tools(tools: Path, old: Path, new: Path) -> None:
    """Let the host programs' dependency files say where they are now.

    Kernel objects are named relative to the directory; those of tools/ absolutely, and were
    objtool made again, so would be every object that it has checked.
    """
    for file in tools.rglob(".*"):
        if file.suffix in (".cmd", ".d") and str(old) in (text := file.read_text("utf-8")):
            file.write_text(text.replace(f"{old}/", f"{new}/"), encoding="utf-8")
