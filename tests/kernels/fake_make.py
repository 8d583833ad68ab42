"""A kernel without a real source, and fakes of make and apt that write small files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from host.progress import silent
from kernels.catalog.entries import KernelEntry, Needs, Source
from kernels.catalog.patch import Patch
from kernels.store.built_kernel import Product, Recipe
from kernels.store.store import Store
from kernels.tools import toolchain

ENTRY = KernelEntry(
    name="9.9",
    abi="release",
    source=Source("debian-source", "linux-source-9.9"),
    wanted=("CONFIG_A=y", "# CONFIG_B is not set"),
    patches=(),
    needs=Needs(tools=("gcc",), tree_mib=1, objects_mib=1, objects=4),
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


def patched(entry: KernelEntry, text: str = TEN) -> KernelEntry:
    """The entry with a patch of the user."""
    return replace(entry, patches=(Patch("ten", text, Path("ten.diff")),), label="+ten")


# "olddefconfig" keeps what was appended, except what `drop` names; "bzImage" compiles two objects.
MAKE = """\
for argument; do
    case "$argument" in O=*) out=${{argument#O=}} ;; esac
done
echo "$* MAKEFLAGS=$MAKEFLAGS $KBUILD_BUILD_TIMESTAMP" >> {fake}/diary
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
APT_CACHE = "printf 'Package: linux-source-9.9\\nVersion: 9.9.4-1\\nSize: 1\\n'\n"


class FakeMake:
    """The directory of a fake make, and its next actions."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        for name, text in (
            ("make", MAKE),
            ("apt-cache", APT_CACHE),
            ("apt-get", ""),
            ("dpkg-deb", ""),
        ):
            program = directory / name
            program.write_text("#!/bin/sh\n" + text.format(fake=directory))
            program.chmod(0o755)

    @property
    def diary(self) -> list[str]:
        """The calls."""
        file = self.directory / "diary"
        return file.read_text().splitlines() if file.exists() else []


def publish(store: Store, directory: Path, entry: KernelEntry = ENTRY, stamp: str = "") -> None:
    """Put a finished kernel for the entry into a store; its files are created in ``directory``."""
    image, config = directory / "image", directory / "dot-config"
    image.write_bytes(b"an image")
    config.write_text("CONFIG_A=y\n")
    with store.locked("a test", silent):
        store.publish(RECIPE, Product("9.9.3-test", image, config))
        store.remember(entry, RECIPE, stamp or toolchain.stamp())


def keep_source(store: Store) -> None:
    """Put the source tree of the entry into a store, as after a build."""
    tree = store.sources / "linux-source-9.9_9.9.3-1"
    tree.mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 9\n")
    os.utime(tree / "Makefile", (0, 0))
    with store.locked("a test", silent):
        store.remember(ENTRY, Recipe("linux-source-9.9", "9.9.3-1", (), "", "gcc 0"), "")
