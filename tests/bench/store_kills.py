"""`python -m tests.bench.store_kills`: kill builders at moments by chance; the next one has to
succeed, and to get the right thing.

A kernel of three files stands in for Linux.  All else is real: make, tar, patch, git and the
store, which is the same one from the first kill to the last.  Ends with a table, and 1 if anything
was wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from host.die_with_parent import tie
from host.progress import silent
from kernels.build.build import ensure
from kernels.build.gc import Bound, collect
from kernels.build.out_of_tree_modules import ensure_module
from kernels.catalog.entries import KernelEntry, Needs, Source
from kernels.catalog.patch import Patch
from kernels.errors import KernelsError
from kernels.store.store import Store
from kernels.trees.worktrees import WorkTree
from tests.bench.kills import Tally, gone

_PATIENCE_S = 120.0
_YEAR_S = 365 * 24 * 3600.0
_FILES = ("a", "b", "c")
# As slow as it takes to be hit, and trusting times as kbuild does.
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
	@echo "  CC      $*.o"; head -c 4 $< > $@; sleep 0.02; tail -c +5 $< >> $@
modules_prepare:
	@sleep 0.01
modules:
	@cat $(M)/*.c > $(M)/probe.ko; touch $(M)/Module.symvers
"""


def _patch(name: str, text: str) -> Patch:
    lines = f"--- a/{name}.c\n+++ b/{name}.c\n@@ -1 +1 @@\n-source of {name}\n+{text}\n"
    return Patch(f"{text} of {name}", lines)


_PATCHES = ((), (_patch("a", "one"),), (_patch("a", "two"), _patch("b", "three")))
_WANTED = (("CONFIG_A=y",), ("CONFIG_A=y", "CONFIG_B=y"))


@dataclass(frozen=True, slots=True)
class Workshop:
    """A store, a mirror that has the source, a module and a tree of a user's."""

    directory: Path

    @property
    def store(self) -> Store:
        """The store under attack."""
        return Store(self.directory / "store")

    @property
    def tree(self) -> Path:
        """A tree that is edited."""
        return self.directory / "tree"

    def furnish(self) -> None:
        """Make all but the store."""
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
        git = ["git", "-C", str(self.tree)]
        subprocess.run([*git, "init", "-q"], check=True, timeout=_PATIENCE_S)
        for number in range(200):
            (self.tree / f"{number}.c").write_text(f"{number}\n")
        (self.tree / "Makefile").write_text("VERSION = 9\nPATCHLEVEL = 9\n")

    def entry(self, patches: int, wanted: int) -> KernelEntry:
        """One of six kernels."""
        return KernelEntry(
            name="9.9",
            abi="release",
            source=Source("tarball", "linux", series="9.9"),
            fragments=(),
            wanted=_WANTED[wanted],
            patches=_PATCHES[patches],
            needs=Needs(tools=("gcc",), tree_mib=1, objects_mib=1, objects=3),
            default=True,
            label=f"+{patches}" if patches else "",
        )

    # What is done, killed and done again: each raises AssertionError unless it is right.

    def build(self, patches: int, wanted: int) -> None:
        """A kernel is of its source, its patches and its configuration."""
        kernel = ensure(self.entry(patches, wanted), self.store)
        lines = {name: f"source of {name}" for name in _FILES}
        for patch in _PATCHES[patches]:
            text, _, name = patch.name.partition(" of ")
            lines[name] = text
        expected = "".join(f"{lines[name]}\n" for name in _FILES)
        expected += "".join(f"{line}\n" for line in ("CONFIG_TINY=y", *_WANTED[wanted]))
        assert kernel.image.read_text() == expected, kernel.image.read_text()
        assert kernel.config.read_text() in expected

    def module(self, patches: int, wanted: int) -> None:
        """A module is of its source."""
        file = ensure_module(self.entry(patches, wanted), self.directory / "probe", self.store)
        assert file.read_text() == "int probe;\n"

    def collect(self, patches: int, wanted: int) -> None:
        """What went is gone; what stays is whole."""
        bound = Bound(keep=0, every=bool(patches))
        collect(self.store, [self.entry(0, 0)], bound, now=time.time() + _YEAR_S)

    def follow(self, patches: int, wanted: int) -> None:
        """The copy of a tree is what the tree is."""
        copy = WorkTree(Source("tree", "tree-9.9", tree=self.tree), self.store, silent)
        with self.store.locked("a drill", silent):
            copy.follow(1)
        for file in self.tree.glob("*.c"):
            assert (copy.path / file.name).read_text() == file.read_text()
        assert len(list(copy.path.glob("*.c"))) == len(list(self.tree.glob("*.c")))

    def edit(self) -> None:
        """Change the tree."""
        for number in random.sample(range(200), 60):
            file = self.tree / f"{number}.c"
            if file.exists() and random.random() < 0.3:
                file.unlink()
            else:
                file.write_text(f"{number} {random.random()}\n")

    def left(self) -> list[str]:
        """What is in the store that nobody needs."""
        root = self.store.root
        patterns = ("work/*", "**/*.new", "*.holder", "sources/*.journal", "**/.*.original")
        return [str(each.relative_to(root)) for pattern in patterns for each in root.glob(pattern)]


DRILLS = ("build", "module", "collect", "follow")
VICTIMS = ("builder", "make", "all")


class Drills:
    """One workshop, and the processes that work in it."""

    def __init__(self, directory: Path) -> None:
        self.workshop = Workshop(directory)
        self.workshop.furnish()
        os.environ["UEVT_MIRROR"] = f"file://{directory}/mirror"

    def start(self, drill: str, patches: int, wanted: int) -> int:
        """A process that does one thing: its id."""
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            tie(parent)
            self.do(drill, patches, wanted)
        except BaseException as error:
            sys.stderr.write(f"{drill}: {error}\n")
        finally:
            os._exit(0)

    def do(self, drill: str, patches: int, wanted: int) -> float:
        """Do it to its end; seconds.  Raises AssertionError."""
        began = time.monotonic()
        getattr(self.workshop, drill)(patches, wanted)
        return time.monotonic() - began

    def once(self, drill: str, victim: str, takes_s: float, tally: Tally) -> None:
        """Kill it once, then do it again, and one of the kernels."""
        patches, wanted = random.randrange(len(_PATCHES)), random.randrange(len(_WANTED))
        if drill == "follow":
            self.workshop.edit()
        elif random.random() < 0.5:
            # Much to do, as obtaining the source.
            self.do("collect", 1, 0)
        pid = self.start(drill, patches, wanted)
        time.sleep(random.uniform(0, takes_s))
        chosen = {"builder": [pid], "make": below(pid), "all": [pid, *below(pid)]}[victim]
        if victim == "make":
            chosen = random.sample(chosen, min(1, len(chosen)))
        tally.kills += any(list(map(gone, chosen)))
        os.waitpid(pid, 0)
        self.do(drill, patches, wanted)
        self.do("build", random.randrange(len(_PATCHES)), random.randrange(len(_WANTED)))
        tally.found.update(each.split("/")[0] for each in self.workshop.left())


def below(pid: int) -> list[int]:
    """The processes that one has started, and those that these have."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        found = [int(each) for each in children.read_text().split()]
    except OSError:
        return []
    return found + [each for child in found for each in below(child)]


def main(argv: Sequence[str] | None = None) -> int:
    """Kill, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.store_kills")
    parser.add_argument("--kills", type=int, default=20, help="of each drill and victim")
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args(argv)
    random.seed(arguments.seed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="uevt-kills-") as directory:
        drills = Drills(Path(directory))
        for drill in DRILLS:
            drills.do("collect", 1, 0)
            takes_s = drills.do(drill, 1, 1)
            for victim in VICTIMS:
                if (drill, victim) == ("collect", "make"):
                    # It starts no process.
                    continue
                tally = Tally()
                for _ in range(2 * arguments.kills):
                    if tally.kills >= arguments.kills or len(tally.wrong) >= 3:
                        break
                    try:
                        drills.once(drill, victim, takes_s, tally)
                    except (AssertionError, KernelsError, OSError) as error:
                        tally.wrong.append(str(error))
                        sys.stdout.write(f"WRONG {drill} {victim}: {error}\n")
                sys.stdout.write(f"{tally.line(drill, victim)}\n")
                sys.stdout.flush()
                wrong += len(tally.wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
