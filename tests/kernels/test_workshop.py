"""The real workshop with a fake make: configuration check, failures, interrupted builds."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from host.progress import Step, silent
from kernels.build.build import Workshop, ensure
from kernels.build.kbuild import TAIL_LINES
from kernels.build.objects import ObjectsDirectory
from kernels.catalog.entries import KernelEntry
from kernels.errors import BuildFailed, KernelTrouble, Killed, LostOptions, PatchRefused, StoreFull
from kernels.store.last_build import FILE
from kernels.store.store import Store
from kernels.tools import child_process
from tests.kernels.fake_make import ENTRY, TEN, VARIANT, FakeMake, new_file, patched

# The fake make is first on PATH, and the store has a source tree.
pytestmark = pytest.mark.usefixtures("make")

# Kernels with a patch of one file, which differs; and the kernel without, configured differently.
FIRST, EDITED = (patched(ENTRY, new_file("fork.c", text)) for text in ("B", "C"))
CHANGED = replace(ENTRY, wanted=("CONFIG_A=y",))


def steps_of(entry: KernelEntry, store: Store) -> list[Step]:
    """The reported steps of a build."""
    steps: list[Step] = []
    ensure(entry, store, progress=steps.append)
    return steps


def objects(store: Store, kernel_id: str = "9.9") -> Path:
    """The only objects directory of a kernel."""
    (directory,) = store.objects.glob(f"*/{kernel_id}")
    return directory


def version(store: Store) -> str:
    """The Makefile of the only source tree."""
    (tree,) = store.sources.iterdir()
    return (tree / "Makefile").read_text()


def test_kernel_is_built(store: Store, make: FakeMake) -> None:
    steps: list[Step] = []
    kernel = ensure(ENTRY, store, progress=steps.append)
    assert kernel.release == "9.9.3"
    assert kernel.image.read_text() == "image\n"
    assert kernel.config.read_text() == "CONFIG_TINY=y\nCONFIG_A=y\n# CONFIG_B is not set\n"
    assert make.targets == ["tinyconfig", "olddefconfig", "bzImage"]
    for line in make.diary:
        assert line.endswith(" MAKEFLAGS= Thu Jan  1 00:00:00 UTC 1970")
    assert (steps[-1].done, steps[-1].expected, steps[-1].passing) == (2, 4, False)


def test_lost_option_stops_the_build_before_compiling(store: Store, make: FakeMake) -> None:
    (make.directory / "drop").write_text("CONFIG_A\n")
    with pytest.raises(LostOptions) as caught:
        ensure(ENTRY, store)
    assert [each.name for each in caught.value.lost] == ["CONFIG_A"]
    assert isinstance(caught.value, KernelTrouble)
    assert "bzImage" not in make.targets
    assert store.lookup(ENTRY) is None


def test_failed_make_shows_its_last_lines_and_keeps_the_log(store: Store, make: FakeMake) -> None:
    # With several jobs the error can be far from the end.
    make.fail("init/main.c:1: error: no" + "\n  CC      init/other.o" * TAIL_LINES)
    with pytest.raises(BuildFailed) as caught:
        ensure(ENTRY, store)
    assert caught.value.tail[0] == "init/main.c:1: error: no"
    assert len(caught.value.tail) == TAIL_LINES
    assert "CC      init/main.o" in caught.value.log.read_text()
    assert str(caught.value.log) in caught.value.hint
    assert store.lookup(ENTRY) is None


def test_missing_source_tree_is_resolved_again(store: Store) -> None:
    shop = Workshop(store, silent)
    assert shop.choose(ENTRY, "9.9.3-1") == "9.9.3-1"
    assert shop.choose(ENTRY, "9.9.2-1") == "9.9.4-1"


def test_a_variant_is_made_from_the_patched_tree_of_its_base(store: Store, make: FakeMake) -> None:
    plain = ensure(ENTRY, store)
    kernel = ensure(VARIANT, store)
    assert make.seen == "VERSION = 10\n"
    assert kernel.image != plain.image
    assert kernel.revision == plain.revision
    assert kernel.of == "9.9"
    assert kernel.variant
    assert version(store) == "VERSION = 9\n"
    (tree,) = store.sources.iterdir()
    assert (tree / "Makefile").stat().st_mtime == 0
    # The patch time does not go into an image.
    assert all(line.endswith("1970") for line in make.diary)


def test_moved_store_keeps_its_objects(store: Store, tmp_path: Path) -> None:
    ensure(FIRST, store)
    (view,) = store.views.glob("*/9.9+ten")
    built = objects(store, "9.9+ten")
    command = built / ".fork.o.cmd"
    command.write_text(f"gcc -I{view}/include {built}/x {view}-other")
    os.utime(command, (7, 7))
    moved = Store(tmp_path / "elsewhere")
    store.root.rename(moved.root)
    steps = steps_of(EDITED, moved)
    (view,) = moved.views.glob("*/9.9+ten")
    now = objects(moved, "9.9+ten")
    command = now / ".fork.o.cmd"
    assert command.read_text().startswith(f"gcc -I{view}/include {now}/x ")
    assert f"{view}-other" not in command.read_text()
    assert command.stat().st_mtime == 7
    assert steps[-1].phase == "9.9+ten: 1 file differs from the last build (fork.c)"


def test_builds_of_other_patches_do_not_wait(store: Store) -> None:
    ensure(ENTRY, store)
    path = objects(store).with_name("9.9+other")
    name = ObjectsDirectory(path, view=path).lock_name
    with store.lock(name, "building 9.9+other", silent):
        steps = steps_of(patched(ENTRY), store)
    assert not any(step.idle for step in steps)
    assert version(store) == "VERSION = 9\n"


def test_objects_of_a_patched_kernel_are_seeded_from_its_base(store: Store) -> None:
    ensure(ENTRY, store)
    base = objects(store)
    (base / "main.o").write_text("object")
    os.utime(base / "main.o", (5, 5))
    (base / "tools").mkdir()
    (tree,) = store.sources.iterdir()
    command = "{objects}/tools/check.o := gcc -I{tree}/include -o {objects}/tools/check.o"
    (base / "tools/.check.o.cmd").write_text(command.format(objects=base, tree=tree))
    steps = steps_of(patched(ENTRY), store)
    copy = objects(store, "9.9+ten")
    (view,) = store.views.glob("*/9.9+ten")
    assert (copy / "main.o").stat().st_mtime == 5
    assert (copy / "tools/.check.o.cmd").read_text() == command.format(objects=copy, tree=view)
    assert str(copy) not in (base / "tools/.check.o.cmd").read_text()
    phases = list(dict.fromkeys(step.phase for step in steps))
    assert phases[:2] == ["preparing the source of 9.9+ten", "copying the objects of 9.9"]
    assert steps[-1].phase == "9.9+ten: 1 file differs from the objects of 9.9 (Makefile)"


def test_objects_of_an_older_configuration_are_seeded_again(store: Store) -> None:
    """When the suite's configuration has changed and the base is built with it already."""
    ensure(ENTRY, store)
    ensure(patched(ENTRY), store)
    copy = objects(store, "9.9+ten")
    (copy / "main.o").write_text("of the older configuration")
    changed = replace(ENTRY, wanted=("CONFIG_C=y",))
    ensure(changed, store)
    phases = [step.phase for step in steps_of(patched(changed), store)]
    assert "copying the objects of 9.9" in phases
    assert not (copy / "main.o").exists()


@pytest.mark.parametrize("why", ["other configuration", "unfinished", "never built"])
def test_objects_that_do_not_fit_are_not_copied(store: Store, why: str) -> None:
    changed = patched(ENTRY)
    if why != "never built":
        ensure(ENTRY, store)
        (objects(store) / "main.o").write_text("object")
    if why == "other configuration":
        changed = replace(changed, wanted=("CONFIG_C=y",))
    elif why == "unfinished":
        (objects(store) / ".unfinished").touch()
    steps = steps_of(changed, store)
    assert not (objects(store, "9.9+ten") / "main.o").exists()
    assert steps[-1].expected == 4


def test_edited_patch_reuses_objects_and_configuration(store: Store, make: FakeMake) -> None:
    ensure(FIRST, store)
    directory = objects(store, "9.9+ten")
    (directory / "main.o").touch()
    calls = len(make.diary)
    steps = steps_of(EDITED, store)
    assert (directory / "main.o").exists()
    assert make.targets[calls:] == ["bzImage"]
    assert steps[-1].phase == "9.9+ten: 1 file differs from the last build (fork.c)"
    assert ensure(EDITED, store).image != ensure(FIRST, store).image
    # The earlier kernel is in the store: nothing is built.
    assert len(make.diary) == calls + 1


@pytest.mark.parametrize(
    "text",
    [new_file("Kconfig"), new_file("scripts/kconfig/conf.c"), TEN],
    ids=["Kconfig", "conf.c", "Makefile"],
)
def test_patch_of_kconfig_configures_again(store: Store, make: FakeMake, text: str) -> None:
    ensure(ENTRY, store)
    calls = len(make.diary)
    ensure(patched(ENTRY, text), store)
    assert "olddefconfig" in make.targets[calls:]


def test_changed_options_are_counted_and_named(store: Store) -> None:
    ensure(ENTRY, store)
    (objects(store) / "main.o").write_text("object")
    wanted = ("CONFIG_A=m", "# CONFIG_B is not set", *(f"CONFIG_C{n}=y" for n in range(3)))
    steps = steps_of(replace(ENTRY, wanted=wanted), store)
    assert steps[-1].phase == (
        "9.9: 4 options differ from the last build (CONFIG_A, CONFIG_C0, CONFIG_C1, and 1 more)"
    )
    assert steps[-1].expected is None
    assert (objects(store) / "main.o").exists()


def test_objects_of_a_failed_build_are_kept(store: Store, make: FakeMake) -> None:
    """Compiler errors are part of editing; objects compiled by the failed build are compiled
    again.
    """
    ensure(FIRST, store)
    main = objects(store, "9.9+ten") / "main.o"
    main.touch()
    make.fail("fork.c:1: error: no")
    with pytest.raises(BuildFailed):
        ensure(EDITED, store)
    make.work()
    assert main.exists()
    # An object may be of the failed edit, so even the old content is new to make.
    steps = steps_of(replace(FIRST, wanted=CHANGED.wanted), store)
    assert steps[-1].phase.startswith("9.9+ten: 1 file and 1 option differ from the last build")


@pytest.mark.parametrize(
    ("end", "kept"),
    [(child_process.Interrupted(), True), (KeyboardInterrupt(), False), (-9, False)],
    ids=["Ctrl-C, ended by itself", "Ctrl-C, killed", "signal"],
)
def test_objects_of_a_killed_make_are_not_trusted(
    store: Store, monkeypatch: pytest.MonkeyPatch, end: BaseException | int, kept: bool
) -> None:
    """Only a make that ended by itself has removed its unfinished files."""
    ensure(ENTRY, store)
    command = objects(store) / ".main.o.cmd"
    command.touch()

    def interrupted(*_: object, **__: object) -> int:
        if isinstance(end, BaseException):
            raise end
        return end

    steps: list[Step] = []
    with monkeypatch.context() as patch:
        patch.setattr("kernels.build.kbuild.child_process.run", interrupted)
        with pytest.raises((KeyboardInterrupt, Killed)):
            ensure(CHANGED, store, progress=steps.append)
    continued = "interrupted; the next build of 9.9 goes on with the 1 object compiled"
    assert ([step.phase for step in steps[-1:]] == [continued]) is kept
    ensure(CHANGED, store)
    assert command.exists() is kept


def test_objects_from_before_the_clock_was_set_back_are_not_trusted(store: Store) -> None:
    """A file that is edited now is older than they are."""
    ensure(ENTRY, store)
    command = objects(store) / ".main.o.cmd"
    command.touch()
    future = time.time() + 3600
    os.utime(objects(store) / FILE, (future, future))
    ensure(CHANGED, store)
    assert not command.exists()


@pytest.mark.parametrize("record", ["{}", "[]", '{"\\ud800": 1}', '{"patched": {"a.c": 1}}'])
def test_objects_with_a_damaged_record_are_not_trusted(store: Store, record: str) -> None:
    ensure(ENTRY, store)
    command = objects(store) / ".main.o.cmd"
    command.touch()
    (objects(store) / FILE).write_text(record)
    ensure(CHANGED, store)
    assert not command.exists()


def test_failing_patch_of_the_user_is_a_user_mistake(store: Store, make: FakeMake) -> None:
    message = r"ten does not apply to linux-source-9\.9_9\.9\.3-1"
    with store.locked("a test", silent), pytest.raises(PatchRefused, match=message):
        ensure(patched(ENTRY, TEN.replace("= 9", "= 8")), store)
    # Reported before a lock is taken and anything is copied.
    assert list(store.objects.glob("*/*")) == []
    assert make.diary == []


@pytest.mark.parametrize(
    "output",
    [
        "gcc: fatal error: Killed signal terminated program cc1\ncompilation terminated.",
        "gcc: fatal error: Killed signal terminated program cc1" + "\n  CC      fs/open.o" * 40,
        "make[2]: *** [scripts/Makefile.vmlinux:37: vmlinux] Error 137",
    ],
    ids=["compiler", "among other jobs", "linker"],
)
def test_killed_compiler_is_host_trouble(store: Store, make: FakeMake, output: str) -> None:
    """The out-of-memory killer kills compilers first, and make exits by itself."""
    make.fail(output)
    with pytest.raises(Killed, match=r"compiling 9\.9 was interrupted") as caught:
        ensure(ENTRY, store)
    assert "out-of-memory killer" in caught.value.hint
    make.work()
    ensure(ENTRY, store)


def test_full_disk_is_host_trouble(store: Store, make: FakeMake) -> None:
    make.fail("fatal error: closing main.o: No space left on device")
    with pytest.raises(StoreFull, match=r"building 9\.9") as caught:
        ensure(ENTRY, store)
    assert "UEVT_CACHE" in caught.value.hint
    make.work()
    ensure(ENTRY, store)
