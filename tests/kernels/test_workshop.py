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
from kernels.store import Store
from tests.kernels.fake_make import FakeMake

TEN = (("ten", "--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-VERSION = 9\n+VERSION = 10\n"),)


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


def test_a_variant_is_made_from_the_patched_tree_of_its_base(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    plain = ensure(built_before, store)
    variant = replace(built_before, name="9.9-ten", patches=TEN, of="9.9")
    kernel = ensure(variant, store)
    assert (make.directory / "seen").read_text() == "VERSION = 10\n"
    assert kernel.image != plain.image
    assert kernel.revision == plain.revision
    assert kernel.of == "9.9"
    assert kernel.variant
    (tree,) = store.sources.iterdir()
    assert (tree / "Makefile").read_text() == "VERSION = 9\n"
    assert (tree / "Makefile").stat().st_mtime == 0
    # The clock's time of the patch is in no image.
    assert all(line.endswith("1970") for line in make.diary)


def test_a_patched_tree_is_restored_after_a_failure(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    (make.directory / "fail").write_text("error: no\n")
    with pytest.raises(BuildFailed):
        ensure(replace(built_before, patches=TEN), store)
    assert (make.directory / "seen").read_text() == "VERSION = 10\n"
    (make.directory / "fail").unlink()
    ensure(built_before, store)
    assert (make.directory / "seen").read_text() == "VERSION = 9\n"


def test_a_patch_that_does_not_apply_stops_the_build(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    text = TEN[0][1].replace("= 9", "= 8")
    with pytest.raises(BuildFailed, match="Makefile: hunk 1, at line 1, does not apply"):
        ensure(replace(built_before, patches=(("eight", text),)), store)
    assert make.diary == []


def test_objects_of_a_variant_begin_as_those_of_its_base(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    ensure(built_before, store)
    base = objects(store)
    (base / "main.o").write_text("object")
    os.utime(base / "main.o", (5, 5))
    (base / "tools").mkdir()
    (base / "tools/.check.o.cmd").write_text(f"{base}/tools/check.o := gcc -o {base}/tools/check.o")
    told: list[Step] = []
    ensure(replace(built_before, patches=TEN), store, progress=told.append)
    (patched,) = store.objects.glob("*/9.9+*")
    assert (patched / "main.o").stat().st_mtime == 5
    assert (patched / "tools/.check.o.cmd").read_text() == (
        f"{patched}/tools/check.o := gcc -o {patched}/tools/check.o"
    )
    assert str(patched) not in (base / "tools/.check.o.cmd").read_text()
    assert told[0].phase == "copying the objects of 9.9"
    assert told[-1].expected is None


@pytest.mark.parametrize("why", ["other configuration", "unfinished", "never built"])
def test_objects_that_do_not_fit_are_not_copied(
    built_before: KernelEntry, store: Store, make: FakeMake, why: str
) -> None:
    variant = replace(built_before, patches=TEN)
    if why != "never built":
        ensure(built_before, store)
        (objects(store) / "main.o").write_text("object")
    if why == "other configuration":
        variant = replace(variant, wanted=("CONFIG_C=y",))
    elif why == "unfinished":
        (objects(store) / ".unfinished").touch()
    told: list[Step] = []
    ensure(variant, store, progress=told.append)
    (patched,) = store.objects.glob("*/9.9+*")
    assert not (patched / "main.o").exists()
    assert told[-1].expected == 4


def test_edited_patches_begin_anew_and_leave_no_objects_behind(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    eleven = (("ten", TEN[0][1].replace("10", "11")),)
    ensure(built_before, store)
    ensure(replace(built_before, patches=TEN), store)
    (first,) = store.objects.glob("*/9.9+*")
    (first / "ten.o").touch()
    ensure(replace(built_before, patches=eleven), store)
    (second,) = store.objects.glob("*/9.9+*")
    assert first != second
    assert not (second / "ten.o").exists()
    assert len(list(store.objects.glob("*/*"))) == 2


def test_a_variant_is_of_the_revision_that_its_base_was_built_from(
    built_before: KernelEntry, store: Store, make: FakeMake
) -> None:
    variant = replace(built_before, name="9.9-ten", patches=TEN, of="9.9")
    assert store.remembered_revision(variant) == "9.9.3-1"
    assert store.remembered_revision(replace(variant, of=None)) is None
