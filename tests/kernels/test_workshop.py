"""The real workshop, with a fake make: configuration check, failures, objects left half made."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.build import HostWorkshop, ensure
from kernels.catalog import KernelEntry
from kernels.errors import BuildFailed, KernelTrouble, LostOptions, StoreFull
from kernels.progress import Step, silent
from kernels.store import Recipe, Store

# "olddefconfig" keeps what was appended, less what `drop` names; "bzImage" compiles two objects.
MAKE = """\
for argument; do
    case "$argument" in O=*) out=${{argument#O=}} ;; esac
done
echo "$* MAKEFLAGS=$MAKEFLAGS $KBUILD_BUILD_TIMESTAMP" >> {fake}/diary
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
    touch "$out/vmlinux" ;;
esac
"""
APT_CACHE = "printf 'Package: linux-source-9.9\\nVersion: 9.9.4-1\\nSize: 1\\n'\n"


class FakeMake:
    """The directory of a fake make and what it does next."""

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


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMake:
    fake = FakeMake(tmp_path / "fake-make")
    monkeypatch.setenv("PATH", str(fake.directory), prepend=":")
    monkeypatch.setenv("MAKEFLAGS", "-n")
    return fake


@pytest.fixture
def built_before(entry: KernelEntry, store: Store) -> KernelEntry:
    """The entry, whose source tree is in the store and whose name remembers it."""
    tree = store.sources / "linux-source-9.9_9.9.3-1"
    tree.mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 9\n")
    os.utime(tree / "Makefile", (0, 0))
    with store.locked("a test", silent):
        store.remember(entry, Recipe("linux-source-9.9", "9.9.3-1", (), "", "gcc 0"), "")
    return entry


def objects(store: Store) -> Path:
    """The only objects directory."""
    (directory,) = store.objects.glob("*/9.9")
    return directory


def test_a_build(built_before: KernelEntry, store: Store, make: FakeMake) -> None:
    told: list[Step] = []
    kernel = ensure(built_before, store, progress=told.append)
    assert kernel.release == "9.9.3"
    assert kernel.image.read_text() == "image\n"
    assert kernel.config.read_text() == "CONFIG_TINY=y\nCONFIG_A=y\n# CONFIG_B is not set\n"
    assert [line.split(" MAKEFLAGS")[0].split()[-1] for line in make.diary] == [
        "tinyconfig",
        "olddefconfig",
        "bzImage",
    ]
    for line in make.diary:
        assert line.endswith(" MAKEFLAGS= Thu Jan  1 00:00:00 UTC 1970")
    assert (told[-1].done, told[-1].expected, told[-1].passing) == (2, 4, False)


def test_a_second_configuration_reuses_the_objects(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    ensure(built_before, store)
    (objects(store) / "main.o").write_text("object")
    told: list[Step] = []
    ensure(replace(built_before, wanted=("CONFIG_A=y",)), store, progress=told.append)
    assert (objects(store) / "main.o").exists()
    assert told[-1].expected is None


def test_a_lost_option_stops_the_build_before_it_starts(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    (make.directory / "drop").write_text("CONFIG_A\n")
    with pytest.raises(LostOptions) as caught:
        ensure(built_before, store)
    assert caught.value.names == ("CONFIG_A",)
    assert isinstance(caught.value, KernelTrouble)
    assert not any("bzImage" in line for line in make.diary)
    assert store.lookup(built_before) is None


def test_a_failed_make_shows_its_last_lines_and_keeps_the_whole_log(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    (make.directory / "fail").write_text("init/main.c:1: error: no\n")
    with pytest.raises(BuildFailed) as caught:
        ensure(built_before, store)
    assert caught.value.tail[-1] == "init/main.c:1: error: no"
    assert "CC      init/main.o" in caught.value.log.read_text()
    assert str(caught.value.log) in caught.value.mend
    assert store.lookup(built_before) is None


def test_a_full_disk_in_the_middle_is_the_hosts_trouble(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    (make.directory / "fail").write_text("fatal error: closing main.o: No space left on device\n")
    with pytest.raises(StoreFull, match=r"building 9\.9"):
        ensure(built_before, store)


def test_objects_of_an_interrupted_build_are_not_trusted(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    (make.directory / "fail").write_text("interrupted\n")
    with pytest.raises(BuildFailed):
        ensure(built_before, store)
    (objects(store) / "half.o").write_text("half an object")
    (make.directory / "fail").unlink()
    ensure(built_before, store)
    assert not (objects(store) / "half.o").exists()


def test_a_source_tree_that_is_gone_is_resolved_anew(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    shop = HostWorkshop(store, silent)
    assert shop.prepare(built_before, "9.9.3-1").revision == "9.9.3-1"
    assert shop.prepare(built_before, "9.9.2-1").revision == "9.9.4-1"
