"""Kill a build: the next one must succeed, and build the right thing.

A kernel of three files stands in for Linux.  The rest is real: make, tar, patch, git, and one
store that serves all builds.  ``python -m tests.torture.builds DIRECTORY TASK PATCHES OPTIONS``
performs one task.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from msgspec import Struct

from host.progress import silent
from kernels.build.build import ensure
from kernels.build.gc import Bound, collect
from kernels.build.out_of_tree_modules import ensure_module
from kernels.catalog.entries import KernelEntry, Needs, Source
from kernels.catalog.patch import Patch
from kernels.store.store import Store
from kernels.trees.worktrees import WorkTree
from tests.faults import Fault, kill_all
from tests.torture.place import Place
from tests.torture.runs import Report

_LIMIT_S = 120.0
_YEAR_S = 365 * 24 * 3600.0
# A moment within this time, from the start of Python, is one in which the task runs.
_TASK_S = 2.5
_FILES = ("a", "b", "c")
# Slow enough to be hit; trusts time stamps as kbuild does.
_MAKEFILE = """\
VERSION = 9
O ?= .
OBJECTS := $(O)/a.o $(O)/b.o $(O)/c.o
.PHONY: tinyconfig olddefconfig bzImage modules_prepare modules
tinyconfig:
	@echo CONFIG_TINY=y > $(O)/.config
olddefconfig:
	@sleep 0.02
bzImage: $(O)/bzImage
	@mkdir -p $(O)/arch/x86/boot $(O)/include/config
	@cp $(O)/bzImage $(O)/arch/x86/boot/bzImage
	@echo 9.9.3 > $(O)/include/config/kernel.release
	@touch $(O)/vmlinux $(O)/vmlinux.symvers
$(O)/bzImage: $(OBJECTS) $(O)/.config
	@cat $^ > $@
$(O)/%.o: %.c
	@echo "  CC      $*.o"; head -c 4 $< > $@; sleep 0.2; tail -c +5 $< >> $@
modules_prepare:
	@sleep 0.01
modules:
	@cat $(M)/*.c > $(M)/probe.ko; sleep 0.2; touch $(M)/Module.symvers
"""


def _patch(name: str, text: str) -> Patch:
    lines = f"--- a/{name}.c\n+++ b/{name}.c\n@@ -1 +1 @@\n-source of {name}\n+{text}\n"
    return Patch(f"{text} of {name}", lines)


_PATCHES = ((), (_patch("a", "one"),), (_patch("a", "two"), _patch("b", "three")))
_OPTIONS = (("CONFIG_A=y",), ("CONFIG_A=y", "CONFIG_B=y"))
_TASKS = ("build", "module", "collect", "follow")


class Workshop(Struct, frozen=True):
    """A store, a mirror with the source, a module, and a kernel tree."""

    directory: Path

    @property
    def store(self) -> Store:
        """The store under attack."""
        return Store(self.directory / "store")

    @property
    def tree(self) -> Path:
        """A tree that is edited."""
        return self.directory / "tree"

    def set_up(self) -> None:
        """Create all but the store."""
        mirror = self.directory / "mirror" / "v9.x"
        mirror.mkdir(parents=True)
        tarball = mirror / "linux-9.9.3.tar.xz"
        with tarfile.open(tarball, "w:xz") as archive:
            texts = {f"{name}.c": f"source of {name}\n" for name in _FILES}
            for name, text in {"Makefile": _MAKEFILE, **texts, "big": "x" * 4_000_000}.items():
                member = tarfile.TarInfo(f"linux-9.9.3/{name}")
                member.size, member.mtime = len(text), 12345
                archive.addfile(member, io.BytesIO(text.encode()))
        digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
        (mirror / "sha256sums.asc").write_text(f"{digest}  {tarball.name}\n")
        module = self.directory / "probe"
        module.mkdir()
        (module / "Kbuild").write_text("obj-m := probe.o\n")
        (module / "probe.c").write_text("int probe;\n")
        (self.tree / "include/linux").mkdir(parents=True)
        subprocess.run(["git", "-C", self.tree, "init", "-q"], check=True, timeout=_LIMIT_S)
        for number in range(200):
            (self.tree / f"{number}.c").write_text(f"{number}\n")
        (self.tree / "Makefile").write_text("VERSION = 9\nPATCHLEVEL = 9\n")
        (self.tree / "init").mkdir()
        (self.tree / "init/main.c").write_text("int main;\n")

    def entry(self, patches: int, options: int) -> KernelEntry:
        """One of six kernels."""
        return KernelEntry(
            name="9.9",
            abi="release",
            source=Source("tarball", "linux", series="9.9"),
            wanted=_OPTIONS[options],
            patches=_PATCHES[patches],
            needs=Needs(tree_mib=1, objects_mib=1, objects=3),
            default=True,
            label=f"+{patches}" if patches else "",
        )

    # The tasks.  Each raises AssertionError for a wrong result.

    def build(self, patches: int, options: int) -> None:
        """Build a kernel from source, patches and configuration."""
        kernel = ensure(self.entry(patches, options), self.store)
        lines = {name: f"source of {name}" for name in _FILES}
        for patch in _PATCHES[patches]:
            text, _, name = patch.name.partition(" of ")
            lines[name] = text
        expected = "".join(f"{lines[name]}\n" for name in _FILES)
        expected += "".join(f"{line}\n" for line in ("CONFIG_TINY=y", *_OPTIONS[options]))
        assert kernel.image.read_text() == expected, kernel.image.read_text()
        assert kernel.config.read_text() in expected

    def module(self, patches: int, options: int) -> None:
        """Build a module."""
        file = ensure_module(self.entry(patches, options), self.directory / "probe", self.store)
        assert file.read_text() == "int probe;\n"

    def collect(self, patches: int, options: int) -> None:
        """Remove unused kernels, or with patches all."""
        bound = Bound(keep=0, every=bool(patches))
        collect(self.store, [self.entry(0, 0)], bound, now=time.time() + _YEAR_S)

    def follow(self, patches: int, options: int) -> None:
        """Copy the tree."""
        copy = WorkTree(Source("tree", "tree-9.9", tree=self.tree), self.store, silent)
        with self.store.lock("tree-9.9", "torture", silent):
            copy.follow(1)
        for file in self.tree.glob("*.c"):
            assert (copy.path / file.name).read_text() == file.read_text()
        assert len(list(copy.path.glob("*.c"))) == len(list(self.tree.glob("*.c")))

    def edit(self, random: Random) -> None:
        """Change the tree."""
        for number in random.sample(range(200), 60):
            file = self.tree / f"{number}.c"
            if file.exists() and random.random() < 0.3:
                file.unlink()
            else:
                file.write_text(f"{number} {random.random()}\n")

    def leftovers(self) -> list[str]:
        """Temporary files in the store."""
        root = self.store.root
        patterns = ("work/*", "**/*.new", "sources/*.journal", "**/.*.original")
        return [str(each.relative_to(root)) for pattern in patterns for each in root.glob(pattern)]


def disturbed_build(fault: Fault, place: Place, random: Random) -> Report:
    """Kill a task at a random moment, repeat it, and build a kernel."""
    report = Report((fault,))
    workshop = Workshop(place.directory / "workshop")
    if not workshop.directory.exists():
        workshop.set_up()
    task, patches, options = random.choice(_TASKS), random.randrange(3), random.randrange(2)
    workshop.edit(random)
    if random.random() < 0.5:
        workshop.collect(1, 0)
    began = time.monotonic()
    with _start(place, workshop, task, patches, options) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(random.uniform(0.2, _TASK_S))
        # The builder itself, a child of it (make, a shell, tar), or all of them.
        running = list(place.processes())
        if running and random.random() < 0.7:
            running = random.sample(running, 1)
        kill_all(running)
        process.wait(_LIMIT_S)
    report.leaked += place.left()
    for again, patch in ((task, patches), ("build", random.randrange(3))):
        with _start(place, workshop, again, patch, options) as process:
            code = process.wait(_LIMIT_S)
        if code:
            output = place.output.read_text(errors="replace").strip()[-300:]
            report.lost.append(f"{again} after a killed {task} ended with {code}: {output}")
    report.seconds = time.monotonic() - began
    report.leaked += [*place.left(), *workshop.leftovers()]
    if report.seconds > fault.allowance_s:
        report.late.append(f"{report.seconds:.1f} s")
    return report


def _start(
    place: Place, workshop: Workshop, task: str, patches: int, options: int
) -> subprocess.Popen[bytes]:
    words = ["-m", __name__, str(workshop.directory), task, str(patches), str(options)]
    mirror = f"file://{workshop.directory}/mirror"
    return place.start(words, {"UEVT_MIRROR": mirror})


def main(argv: Sequence[str]) -> None:
    """Perform one task.  Raises AssertionError, KernelsError."""
    directory, task, *numbers = argv
    getattr(Workshop(Path(directory)), task)(*map(int, numbers))


if __name__ == "__main__":
    main(sys.argv[1:])
