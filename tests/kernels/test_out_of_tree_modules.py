"""Out-of-tree modules are built once per kernel and source, from a directory that stays clean."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from errno import EROFS
from pathlib import Path

import pytest
from msgspec.structs import replace

from host.progress import Step
from kernels.build.build import ensure
from kernels.build.out_of_tree_modules import ensure_module
from kernels.errors import BuildFailed, StoreUnusable, UserMistake
from kernels.store.store import Store
from tests.kernels.fake_make import ENTRY, TEN, VARIANT, FakeMake, new_file, patched, write_module

# The fake make is first on PATH, and the store has a source tree.
pytestmark = pytest.mark.usefixtures("make")


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    """A directory with a module's source."""
    return write_module(tmp_path / "probe", "int init;\n")


def module_makes(make: FakeMake) -> list[str]:
    """The calls of make that built a module."""
    return [line for line in make.diary if " M=" in line]


def test_a_module_is_built_against_its_kernel(store: Store, make: FakeMake, probe: Path) -> None:
    module = ensure_module(ENTRY, probe, store)
    assert module.name == "probe.ko"
    assert module.read_text().startswith("int init;\nCONFIG_TINY=y\nCONFIG_A=y\n")
    assert store.modules in module.parents
    assert sorted(file.name for file in probe.iterdir()) == ["Kbuild", "probe.c"]
    # A vendor's Makefile may set another architecture.
    assert " ARCH=x86_64 CROSS_COMPILE= modules_prepare " in make.diary[-2]
    assert make.diary[-1] == module_makes(make)[0]
    assert not any((store.root / "work").iterdir())


def test_a_module_is_built_once(store: Store, probe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ensure_module(ENTRY, probe, store)

    def no_process(*_: object, **__: object) -> None:
        pytest.fail("a warm look-up started a process")

    monkeypatch.setattr(subprocess, "Popen", no_process)
    monkeypatch.setattr(store, "locked", no_process)
    assert ensure_module(ENTRY, probe, store) == first


@pytest.mark.parametrize("changed", ["probe.c", "probe.h", ""], ids=["source", "header", "kernel"])
def test_changed_module_is_built_again(
    store: Store, make: FakeMake, probe: Path, changed: str
) -> None:
    first = ensure_module(ENTRY, probe, store)
    if changed:
        (probe / changed).write_text("int exit;\n")
    kernel = ENTRY if changed else replace(ENTRY, wanted=("CONFIG_C=y",))
    assert ensure_module(kernel, probe, store) != first
    assert len(module_makes(make)) == 2


def test_module_of_a_variant_sees_its_patches(store: Store, make: FakeMake, probe: Path) -> None:
    ensure_module(VARIANT, probe, store)
    assert make.seen == "VERSION = 10\n"
    assert f"O={store.objects}" in module_makes(make)[0]
    assert "/9.9-ten " in module_makes(make)[0]
    (tree,) = store.sources.iterdir()
    assert (tree / "Makefile").read_text() == "VERSION = 9\n"


def test_directory_of_any_name(store: Store, make: FakeMake, probe: Path) -> None:
    """kbuild refuses some names; Python decodes others to surrogates."""
    moved = probe.rename(probe.with_name("a probe: 1%"))
    (moved / os.fsdecode(b"caf\xe9.h")).touch()
    assert ensure_module(ENTRY, moved, store).name == "probe.ko"
    (call,) = module_makes(make)
    assert re.search(r" M=[^ :%]+ modules ", call)


def test_missing_log_directory_is_created(store: Store, probe: Path) -> None:
    ensure(ENTRY, store)
    shutil.rmtree(store.logs)
    assert ensure_module(ENTRY, probe, store).is_file()


def test_objects_of_another_configuration_are_not_used(store: Store, probe: Path) -> None:
    ensure(ENTRY, store)
    ensure(replace(ENTRY, wanted=("CONFIG_C=y",)), store)
    module = ensure_module(ENTRY, probe, store)
    assert "CONFIG_A=y" in module.read_text()
    assert "CONFIG_C=y" not in module.read_text()


def test_failure_names_module_and_last_lines(store: Store, make: FakeMake, probe: Path) -> None:
    ensure(ENTRY, store)
    make.fail("probe.c:1: error: no")
    with pytest.raises(BuildFailed, match=r"module probe for 9\.9 failed") as caught:
        ensure_module(ENTRY, probe, store)
    assert caught.value.tail[-1] == "probe.c:1: error: no"
    assert "probe.c:1: error: no" in caught.value.log.read_text()
    make.work()
    steps: list[Step] = []
    assert ensure_module(ENTRY, probe, store, progress=steps.append).is_file()
    # A module that does not compile leaves the kernel's objects intact.
    assert not any(step.phase.startswith("compiling") for step in steps)


@pytest.mark.parametrize(
    ("kbuild", "found"), [("obj-y := probe.o\n", "no module"), ("obj-m := a.o b.o\n", "a.ko, b.ko")]
)
def test_directory_with_two_modules_is_refused(
    store: Store, probe: Path, kbuild: str, found: str
) -> None:
    (probe / "Kbuild").write_text(kbuild)
    with pytest.raises(BuildFailed, match=rf"probe for 9\.9 failed\n    it made {found}"):
        ensure_module(ENTRY, probe, store)


def test_unusable_directory_is_refused(store: Store, make: FakeMake, probe: Path) -> None:
    (probe / "probe.h").symlink_to("nowhere")
    with pytest.raises(UserMistake, match=r"probe\.h: No such file"):
        ensure_module(ENTRY, probe, store)
    (probe / "Kbuild").unlink()
    with pytest.raises(UserMistake, match="not a module's directory"):
        ensure_module(ENTRY, probe, store)
    assert make.diary == []


@pytest.mark.parametrize(
    ("file", "option", "seen"),
    [
        # fork.c has an object of its own; bounds.c generates a header, tools/fork.c builds modules.
        ("fork.c", "CONFIG_MODULES", False),
        ("bounds.c", "CONFIG_MODULES", True),
        ("sched.h", "CONFIG_MODULES", True),
        ("tools/fork.c", "CONFIG_MODULES", True),
        # The module is bound to the image.
        ("fork.c", "CONFIG_RANDSTRUCT", True),
        ("fork.c", "CONFIG_DEBUG_INFO_BTF_MODULES", True),
    ],
)
def test_patch_that_a_module_can_see_rebuilds_it(
    store: Store, make: FakeMake, probe: Path, file: str, option: str, seen: bool
) -> None:
    entry = replace(ENTRY, wanted=("CONFIG_MODULES=y", f"{option}=y"))
    ensure(patched(entry, new_file(file)), store)
    (objects,) = store.objects.glob("*/9.9+ten")
    (objects / "tools").mkdir()
    for name in ("fork.o", "tools/fork.o"):
        (objects / name).touch()
    first = ensure_module(patched(entry, new_file(file, "C")), probe, store)
    second = ensure_module(patched(entry, new_file(file, "D")), probe, store)
    assert (second != first) is seen
    assert len(module_makes(make)) == (2 if seen else 1)


def test_earlier_patch_finds_its_module(store: Store, make: FakeMake, probe: Path) -> None:
    first, second = (patched(ENTRY, TEN.replace("10", n)) for n in ("11", "12"))
    ensure(first, store)
    ensure(second, store)
    ensure_module(first, probe, store)
    assert make.seen == "VERSION = 11\n"


def test_products_of_a_build_in_place_are_no_sources(store: Store, probe: Path) -> None:
    first = ensure_module(ENTRY, probe, store)
    (probe / ".git").mkdir()
    (probe / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("probe.o", "probe.ko", ".probe.o.cmd", "Module.symvers", "probe.mod.c"):
        (probe / name).write_text("of another kernel")
    assert ensure_module(ENTRY, probe, store) == first
    (probe / "probe.c").write_text("int exit;\n")
    assert ensure_module(ENTRY, probe, store).read_text().startswith("int exit;\n")


def test_module_uses_symbols_of_earlier_modules(
    store: Store, make: FakeMake, probe: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(probe, tmp_path / "other")
    (other / "probe.c").write_text("int other;\n")
    first = ensure_module(ENTRY, probe, store)
    alone = ensure_module(ENTRY, other, store)
    behind = ensure_module(ENTRY, other, store, after=[first])
    assert behind != alone
    assert f"KBUILD_EXTRA_SYMBOLS={first.parent}/Module.symvers" in module_makes(make)[-1]
    assert "KBUILD_EXTRA_SYMBOLS" not in module_makes(make)[-2]
    assert ensure_module(ENTRY, other, store, after=[first]) == behind


@pytest.mark.parametrize("built", [True, False])
def test_read_only_store_serves_modules(
    store: Store, probe: Path, monkeypatch: pytest.MonkeyPatch, built: bool
) -> None:
    ensure(ENTRY, store)
    first = ensure_module(ENTRY, probe, store) if built else None

    def refused(*_: object, **__: object) -> None:
        raise OSError(EROFS, "Read-only file system")

    # root can always write; imitate a read-only file system.
    for name in ("os.utime", "pathlib.Path.mkdir", "pathlib.Path.write_text", "fcntl.flock"):
        monkeypatch.setattr(name, refused)
    if built:
        assert ensure_module(ENTRY, probe, Store(store.root)) == first
        return
    with pytest.raises(StoreUnusable, match=r"Read-only file system.* building probe for 9\.9"):
        ensure_module(ENTRY, probe, Store(store.root))
