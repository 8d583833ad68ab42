"""Trees of the user as catalog entries, directories that are refused, and builds of copies."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from host.progress import Step, silent
from kernels.build.build import ensure
from kernels.catalog.catalog import load_catalog
from kernels.errors import BuildFailed, UserMistake
from kernels.request import Request
from kernels.store.store import Store
from kernels.trees.user_tree import entry_of, note
from tests.kernels.fake_make import FakeMake
from tests.kernels.user_trees import MAKEFILE, everything


def test_entry_of_a_tree(tree: Path, store: Store) -> None:
    entry = Request(tree=tree).entry(store)
    assert entry.kernel_id == "tree-6.13-rc2"
    assert entry.wanted == load_catalog().find("6.13").wanted
    assert entry.abi_for("6.13.0-rc2-uevt") == "6.13.0-rc2"
    assert Request(tree=tree, flavour=None).entry(store) == entry


@pytest.mark.parametrize(
    ("number", "like"),
    [
        ("5.18.0", "5.18"),
        ("6.3.2", "6.3"),
        ("6.12.7", "6.12"),
        ("7.3.1", "7.3"),
        ("9.4", "mainline"),
    ],
)
def test_the_configuration_is_that_of_the_closest_release(
    tree: Path, store: Store, number: str, like: str
) -> None:
    values = zip(("VERSION", "PATCHLEVEL", "SUBLEVEL"), number.split("."), strict=False)
    (tree / "Makefile").write_text("".join(f"{name} = {value}\n" for name, value in values))
    assert entry_of(tree, None, store, silent).wanted == load_catalog().find(like).wanted


def test_the_same_content_is_the_same_kernel(checkout: Path, store: Store) -> None:
    as_it_is = entry_of(checkout, None, store, silent)
    assert entry_of(checkout, "HEAD", store, silent).revision == as_it_is.revision


def test_what_a_build_left_in_the_tree_is_no_source(tree: Path, store: Store) -> None:
    before = entry_of(tree, None, store, silent).revision
    for name in (".config", "include/config/auto.conf", "arch/x86/include/generated/asm/a.h"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("built\n")
    assert entry_of(tree, None, store, silent).revision == before
    (tree / "include" / "generated.h").write_text("source\n")
    assert entry_of(tree, None, store, silent).revision != before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("rm -r linux", "linux is no kernel tree: no such directory"),
        ("rm linux/Makefile", "is no kernel tree: it has no Makefile"),
        ("rm linux/init/main.c", "is no kernel tree: it has no init/main.c"),
        ("echo all: > linux/Makefile", "its Makefile names no VERSION"),
        ("sed -i s/13/4/ linux/Makefile; sed -i s/6/4/ linux/Makefile", "is Linux 4.4-rc2, but"),
    ],
)
def test_directory_that_is_no_kernel_tree_is_refused(
    tree: Path, store: Store, change: str, message: str
) -> None:
    subprocess.run(change, shell=True, cwd=tree.parent, check=True)
    with pytest.raises(UserMistake, match=message):
        entry_of(tree, None, store, silent)


@pytest.mark.parametrize("ref", [None, "HEAD"])
def test_noted_tree_is_found_where_it_is_not(
    checkout: Path, store: Store, tmp_path: Path, ref: str | None
) -> None:
    """On another machine, which gets its kernels built; where it is, it is read."""
    entry, there = entry_of(checkout, ref, store, silent), Store(tmp_path / "there")
    commit = entry.source.ref
    note(entry, there)
    assert list(there.trees.rglob("noted-*")) == []
    moved = checkout.rename(tmp_path / "moved")
    note(entry, there)
    assert entry_of(checkout, commit, there, silent) == entry
    with pytest.raises(UserMistake, match=r"linux is no (git repository|kernel tree)"):
        entry_of(checkout, "v6.13-rc2" if ref is None else None, there, silent)
    moved.rename(checkout)
    (checkout / "kernel" / "fork.c").write_text("knife\n")
    assert (entry_of(checkout, commit, there, silent) == entry) is (ref is not None)


def test_unknown_ref_is_refused(checkout: Path, store: Store) -> None:
    with pytest.raises(UserMistake, match=r"has no commit 'v6\.13-rc3'") as caught:
        entry_of(checkout, "v6.13-rc3", store, silent)
    assert caught.value.hint == "did you mean v6.13-rc2?"
    for ref in ("--all", "qqqq"):
        with pytest.raises(UserMistake, match="has no commit") as caught:
            entry_of(checkout, ref, store, silent)
        assert "fetch it" in caught.value.hint
    shutil.rmtree(checkout / ".git")
    with pytest.raises(UserMistake, match="is no git repository") as caught:
        entry_of(checkout, "HEAD", store, silent)
    assert "omit --ref" in caught.value.hint


def test_built_tree_names_its_source(tree: Path, store: Store) -> None:
    entry = entry_of(tree, None, store, silent)
    assert str(entry.source) == str(tree)
    assert str(replace(entry.source, ref="abc")) == f"abc of {tree}"


def test_edited_tree_is_rebuilt_in_place(tree: Path, store: Store, make: FakeMake) -> None:
    request = Request(tree=tree)
    before = everything(tree)
    first = ensure(request.entry(store), store)
    assert first.kernel_id == "tree-6.13-rc2"
    assert ensure(request.entry(store), store) == first
    made = len(make.diary)
    assert everything(tree) == before
    (tree / "kernel/fork.c").write_text("spoon\n")
    steps: list[Step] = []
    second = ensure(request.entry(store), store, progress=steps.append)
    assert second.image != first.image
    assert make.targets[made:] == ["bzImage"]
    assert steps[-1].phase.endswith("1 file differs from the last build (kernel/fork.c)")
    assert len({line.split()[1] for line in make.diary}) == 1
    assert len(list(store.objects.glob("*/*"))) == 1
    (tree / "kernel/fork.c").write_text("fork\n")
    assert ensure(request.entry(store), store) == first
    assert len(make.diary) == made + 1


@pytest.mark.parametrize("between", ["", "a build that fails", "a pruned store"])
def test_edited_options_are_configured(
    tree: Path, store: Store, make: FakeMake, between: str
) -> None:
    request = Request(tree=tree)
    ensure(request.entry(store), store)
    (tree / "Kconfig").write_text("config A\n")
    if between == "a build that fails":
        make.fail("an error")
        with pytest.raises(BuildFailed):
            ensure(request.entry(store), store)
        make.work()
        (tree / "kernel/fork.c").write_text("spoon\n")
    elif between:
        (tree / "Kconfig").unlink()
        (tree / "kernel/fork.c").write_text("spoon\n")
        for repository in store.trees.glob("*/*.git"):
            shutil.rmtree(repository)
    made = len(make.diary)
    ensure(request.entry(store), store)
    assert make.targets[made:] == ["tinyconfig", "olddefconfig", "bzImage"]


@pytest.mark.parametrize(
    ("file", "shared"), [("kernel/fork.c", True), ("kernel/kexec.c", False), ("init/a.h", False)]
)
def test_edit_inside_the_kernel_keeps_its_modules(
    tree: Path, store: Store, make: FakeMake, file: str, shared: bool
) -> None:
    """make compiles fork.c; something else may include kexec.c."""
    request = Request(tree=tree)
    ensure(request.entry(store), store)
    (objects,) = store.objects.glob("*/*")
    (objects / "kernel").mkdir()
    (objects / "kernel/fork.o").touch()
    (tree / "README").touch()
    first = ensure(request.entry(store), store)
    (tree / file).write_text("spoon\n")
    second = ensure(request.entry(store), store)
    assert second.image != first.image
    assert (second.interface == first.interface) is shared


def test_edit_during_the_wait_is_built(tree: Path, store: Store, make: FakeMake) -> None:
    entry = Request(tree=tree).entry(store)
    (tree / "kernel/fork.c").write_text("spoon\n")
    kernel = ensure(entry, store)
    now = Request(tree=tree).entry(store)
    assert kernel.revision == now.revision != entry.revision
    assert store.lookup(now) is not None
    assert store.lookup(entry) is None


def test_patch_is_applied_to_the_copy_only(
    tree: Path, store: Store, make: FakeMake, tmp_path: Path
) -> None:
    patch = tmp_path / "seven.patch"
    patch.write_text("--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-VERSION = 6\n+VERSION = 7\n")
    before = everything(tree)
    entry = Request(tree=tree, patches=(patch,)).entry(store)
    kernel = ensure(entry, store)
    assert kernel.kernel_id == "tree-6.13-rc2+seven"
    assert make.seen.startswith("VERSION = 7\n")
    assert (store.sources / entry.source.package / "Makefile").read_text() == MAKEFILE
    assert everything(tree) == before


def test_patched_file_that_is_edited_differs_once(
    tree: Path, store: Store, make: FakeMake, tmp_path: Path
) -> None:
    lines = [f"line {number}\n" for number in range(9)]
    (tree / "kernel/fork.c").write_text("".join(lines))
    context = " ".join(["", *lines[1:4]]), " ".join(["", *lines[5:8]])
    hunk = f"@@ -2,7 +2,7 @@\n{context[0]}-line 4\n+line four\n{context[1]}"
    (tmp_path / "four.patch").write_text(f"--- a/kernel/fork.c\n+++ b/kernel/fork.c\n{hunk}")
    request = Request(tree=tree, patches=(tmp_path / "four.patch",))
    ensure(request.entry(store), store)
    (tree / "kernel/fork.c").write_text("".join([*lines, "line 9\n"]))
    steps: list[Step] = []
    ensure(request.entry(store), store, progress=steps.append)
    assert steps[-1].phase.endswith("1 file differs from the last build (kernel/fork.c)")
