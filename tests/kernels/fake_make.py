"""A kernel without a real source, and a fake make that writes small files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from host.progress import silent
from kernels.catalog.entries import KernelEntry, Needs, Source
from kernels.catalog.patch import Patch
from kernels.store.built_kernel import Product, Recipe
from kernels.store.store import Store
from kernels.tools import toolchain
from tests.kernels.fake_sources import FakeApt
from tests.shell_scripts import lines_of, write_script

ENTRY = KernelEntry(
    name="9.9",
    abi="release",
    source=Source("debian-source", "linux-source-9.9"),
    wanted=("CONFIG_A=y", "# CONFIG_B is not set"),
    patches=(),
    needs=Needs(tree_mib=1, objects_mib=1, objects=4),
    default=True,
)

RECIPE = Recipe(
    package="linux-source-9.9",
    revision="9.9.3-1",
    wanted=ENTRY.wanted,
    patches="",
    compiler="gcc 1; ld 1",
)

# A patch of the source tree of ENTRY.
TEN = "--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-VERSION = 9\n+VERSION = 10\n"

VARIANT = replace(ENTRY, name="9.9-ten", patches=(Patch("ten", TEN),), of="9.9")


def patched(entry: KernelEntry, text: str = TEN) -> KernelEntry:
    """The entry with a patch of the user."""
    return replace(entry, patches=(Patch("ten", text, Path("ten.diff")),), label="+ten")


def new_file(name: str, text: str = "B") -> str:
    """A patch that creates a file of one line."""
    return f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{text}\n"


# "olddefconfig" keeps what was appended, except what `drop` names; "bzImage" compiles two objects.
MAKE = """\
for argument; do
    case "$argument" in O=*) out=${{argument#O=}} ;; esac
done
echo "$* MAKEFLAGS=$MAKEFLAGS $KBUILD_BUILD_TIMESTAMP" >> {fake}/make-diary
cp "$2/Makefile" {fake}/seen
case "$*" in
*tinyconfig*) echo "CONFIG_TINY=y" > "$out/.config" ;;
*olddefconfig*)
    if test -e {fake}/drop; then
        grep -v -f {fake}/drop "$out/.config" > "$out/new"; mv "$out/new" "$out/.config"
    fi ;;
*bzImage*)
    echo "  CC      init/main.o"
    echo "  AS      arch/x86/entry/entry.o"
    echo "  AR      init/built-in.a"
    if test -e {fake}/fail; then cat {fake}/fail; exit 2; fi
    while test -e {fake}/hold; do sleep 0.02; done
    mkdir -p "$out/arch/x86/boot" "$out/include/config"
    echo image > "$out/arch/x86/boot/bzImage"
    echo 9.9.3 > "$out/include/config/kernel.release"
    touch "$out/vmlinux" "$out/vmlinux.symvers" ;;
*M=*)
    for argument; do
        case "$argument" in M=*) module=${{argument#M=}} ;; esac
    done
    if test -e {fake}/fail; then cat {fake}/fail; exit 2; fi
    for object in $(sed -n 's/^obj-m := //p' "$module/Kbuild"); do
        cat "$module"/*.c "$out/.config" > "$module/${{object%.o}}.ko"
    done
    touch "$module/Module.symvers" ;;
esac
"""


class FakeMake:
    """The directory of a fake make, and its next actions."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.apt = FakeApt(directory)
        self.apt.lists("host", "9.9.4-1")
        write_script(directory / "make", MAKE.format(fake=directory))

    @property
    def diary(self) -> list[str]:
        """The calls."""
        return lines_of(self.directory / "make-diary")

    @property
    def targets(self) -> list[str]:
        """The targets of the calls."""
        return [line.partition(" MAKEFLAGS")[0].split()[-1] for line in self.diary]

    @property
    def seen(self) -> str:
        """The Makefile of the last call."""
        return (self.directory / "seen").read_text()

    def fail(self, output: str) -> None:
        """Let compiling fail with this output."""
        (self.directory / "fail").write_text(f"{output}\n")

    def work(self) -> None:
        """Let compiling work."""
        (self.directory / "fail").unlink()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let compiling wait."""
        hold = self.directory / "hold"
        hold.touch()
        try:
            yield
        finally:
            hold.unlink()


def publish(store: Store, directory: Path, entry: KernelEntry = ENTRY, stamp: str = "") -> None:
    """Put a finished kernel for the entry into a store; its files are created in ``directory``."""
    image, config = directory / "image", directory / "dot-config"
    image.write_bytes(b"an image")
    config.write_text("CONFIG_A=y\n")
    with store.locked("a test", silent):
        store.publish(RECIPE, Product("9.9.3-test", image, config))
        store.remember(entry, RECIPE, stamp or toolchain.stamp())


def write_module(directory: Path, text: str) -> Path:
    """The source of the module probe."""
    directory.mkdir(exist_ok=True)
    (directory / "Kbuild").write_text("obj-m := probe.o\n")
    (directory / "probe.c").write_text(text)
    return directory


def keep_source(store: Store) -> None:
    """Put the source tree of the entry into a store, as after a build."""
    tree = store.sources / "linux-source-9.9_9.9.3-1"
    tree.mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 9\n")
    os.utime(tree / "Makefile", (0, 0))
    with store.locked("a test", silent):
        store.remember(ENTRY, Recipe("linux-source-9.9", "9.9.3-1", (), "", "gcc 0"), "")
