"""Copies of users' trees: what is copied again, and that the trees are only read."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from host.progress import silent
from kernels.build import gc
from kernels.errors import HostTrouble, StoreBusy, StoreFull, StoreUnusable, UserMistake
from kernels.store.store import Store
from kernels.tools.git import GitFailed
from kernels.trees.tree_snapshot import Snapshot, UsersTree
from kernels.trees.user_tree import entry_of
from kernels.trees.worktrees import WorkTree
from tests.kernels.user_trees import FILES, commit, everything, git

# Last lines of .gitignore in a packaged source.
PACKAGED = "/*\n!/debian/\n"

SOURCES = {*FILES, "kernel/link.c"}
TRACKED = SOURCES | {"kernel/blob.o"}


def copied(tree: Path, store: Store, ref: str | None = None) -> Path:
    """The updated copy of a tree."""
    entry = entry_of(tree, ref, store, silent)
    work = WorkTree(entry.source, store, silent)
    with store.lock(entry.source.package, "a test", silent):
        assert work.follow(1) == entry.revision
    return work.path


def edit(tree: Path, **texts: str) -> None:
    """Write files of kernel/."""
    for name, text in texts.items():
        (tree / f"kernel/{name}.c").write_text(f"{text}\n")


def names(copy: Path) -> set[str]:
    return {str(path.relative_to(copy)) for path in copy.rglob("*") if not path.is_dir()}


def become_directory(file: Path, *names: str) -> None:
    """Replace a file by a directory of files."""
    file.unlink()
    file.mkdir()
    for name in names:
        (file / name).touch()


def times(copy: Path) -> dict[str, int]:
    return {name: (copy / name).lstat().st_mtime_ns for name in names(copy)}


def rewritten(before: dict[str, int], copy: Path) -> set[str]:
    return {name for name, when in times(copy).items() if before.get(name) != when}


@pytest.mark.parametrize("packaged", [False, True])
def test_copy_has_sources_and_no_products(tree: Path, store: Store, packaged: bool) -> None:
    if packaged:
        with (tree / ".gitignore").open("a") as file:
            file.write(PACKAGED)
    before = everything(tree)
    copy = copied(tree, store)
    assert names(copy) == SOURCES
    assert (copy / "kernel/fork.c").read_text() == "fork\n"
    assert (copy / "kernel/link.c").readlink() == Path("fork.c")
    assert os.access(copy / "scripts/run.sh", os.X_OK)
    assert not os.access(copy / "Makefile", os.X_OK)
    assert everything(tree) == before


def test_gitignore_that_leaves_out_sources_is_refused(tree: Path, store: Store) -> None:
    script = tree / "arch/x86/kernel/vmlinux.lds.S"
    script.parent.mkdir(parents=True)
    script.touch()
    with (tree / ".gitignore").open("a") as file:
        file.write("*.S\n")
    with pytest.raises(UserMistake, match=r"gitignore of .* leaves out arch/x86/kernel/vmlinux"):
        copied(tree, store)


def test_only_differing_files_are_written(tree: Path, store: Store) -> None:
    copy = copied(tree, store)
    before = times(copy)
    os.utime(tree / "kernel/kexec.c")
    edit(tree, fork="spoon")
    (tree / "init/main.c").chmod(0o755)
    assert copied(tree, store) == copy
    assert rewritten(before, copy) == {"kernel/fork.c"}
    assert os.access(copy / "init/main.c", os.X_OK)


def test_immediate_edit_of_the_same_size_is_noticed(tree: Path, store: Store) -> None:
    """In the same second as the last reading, which is git's resolution."""
    copy = copied(tree, store)
    for text in ("knif\n", "spon\n", "dish\n"):
        (tree / "kernel/fork.c").write_text(text)
        copied(tree, store)
        assert (copy / "kernel/fork.c").read_text() == text


def test_edit_with_an_old_time_is_noticed(tree: Path, store: Store) -> None:
    copy = copied(tree, store)
    status = (tree / "kernel/fork.c").stat()
    time.sleep(1.1)
    edit(tree, fork="knif")
    os.utime(tree / "kernel/fork.c", ns=(status.st_atime_ns, status.st_mtime_ns))
    copied(tree, store)
    assert (copy / "kernel/fork.c").read_text() == "knif\n"


def test_tree_that_changes_while_copied(
    tree: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = WorkTree._copy
    rounds: list[int] = []

    def meddled(self: WorkTree, *rest: Any) -> None:
        if len(rounds) < wanted:
            (tree / "kernel/fork.c").write_text(f"round {len(rounds)}\n")
        rounds.append(1)
        original(self, *rest)

    monkeypatch.setattr(WorkTree, "_copy", meddled)
    wanted = 2
    entry = entry_of(tree, None, store, silent)
    work = WorkTree(entry.source, store, silent)
    with store.lock(entry.source.package, "a test", silent):
        work.follow(1)
        assert (work.path / "kernel/fork.c").read_text() == "round 1\n"
        assert len(rounds) == 3
        wanted = 1 << 30
        edit(tree, fork="once more")
        with pytest.raises(HostTrouble, match="changes faster than it can be read: kernel"):
            work.follow(1)


def test_removed_files_and_changed_file_types(tree: Path, store: Store) -> None:
    copy = copied(tree, store)
    shutil.rmtree(tree / "scripts")
    become_directory(tree / "kernel/kexec.c", "deep.c")
    (tree / "kernel/link.c").unlink()
    edit(tree, link="no link")
    copied(tree, store)
    removed = {"scripts/run.sh", "kernel/kexec.c"}
    assert names(copy) == (SOURCES | {"kernel/kexec.c/deep.c"}) - removed
    assert not (copy / "scripts").exists()
    assert (copy / "kernel/link.c").read_text() == "no link\n"
    shutil.rmtree(tree / "kernel/kexec.c")
    edit(tree, kexec="kexec")
    copied(tree, store)
    assert (copy / "kernel/kexec.c").read_text() == "kexec\n"


def test_dirty_checkout(checkout: Path, store: Store) -> None:
    edit(checkout, fork="edited", new="new")
    (checkout / "kernel/kexec.c").unlink()
    before = everything(checkout)
    copy = copied(checkout, store)
    assert names(copy) == (TRACKED | {"kernel/new.c"}) - {"kernel/kexec.c"}
    assert (copy / "kernel/fork.c").read_text() == "edited\n"
    assert everything(checkout) == before
    git(checkout, "rm", "-q", "--cached", "kernel/blob.o")
    assert names(copied(checkout, store)) == names(copy)
    assert not (copy / "kernel/blob.o").exists()


def test_submodule_and_replaced_files_are_no_sources(checkout: Path, store: Store) -> None:
    """git refuses a path that is a directory."""
    git(checkout, "update-index", "--add", "--cacheinfo", f"160000,{commit(checkout)},lib/sub")
    (checkout / "lib/sub").mkdir(parents=True)
    become_directory(checkout / "kernel/fork.c")
    become_directory(checkout / "kernel/kexec.c", "deep.c")
    removed = {"kernel/fork.c", "kernel/kexec.c"}
    expected = (TRACKED | {"kernel/kexec.c/deep.c"}) - removed
    assert names(copied(checkout, store)) == expected


def test_full_disk_is_not_blamed_on_the_tree(
    tree: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> str:
        raise GitFailed("fatal: unable to write new_index file")

    monkeypatch.setattr(UsersTree, "_tree_id", full)
    with pytest.raises(UserMistake, match="unable to write new_index file"):
        copied(tree, store)
    usage = shutil.disk_usage(store.root)._replace(free=2 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StoreFull, match=f"no space for reading {tree}"):
        copied(tree, store)


def test_repository_that_cannot_be_created_is_host_trouble(tree: Path, store: Store) -> None:
    """As on a full disk, after the tree was read."""
    work = WorkTree(entry_of(tree, None, store, silent).source, store, silent)
    repository = next(store.trees.glob("*/sha1.git"))
    shutil.rmtree(repository)
    repository.touch()
    with pytest.raises(StoreUnusable, match="git"):
        work.changed("HEAD", "HEAD")


@pytest.mark.parametrize("ref", ["HEAD", None])
def test_corrupt_objects_of_a_tree_are_reported(
    checkout: Path, store: Store, ref: str | None
) -> None:
    inner = git(checkout, "rev-parse", "HEAD:scripts")
    place = checkout / ".git"
    if ref is None:
        entry = entry_of(checkout, None, store, silent)
        place = store.trees / entry.source.package / "sha1.git"
    damaged = place / f"objects/{inner[:2]}/{inner[2:]}"
    damaged.unlink()
    damaged.touch()
    expected = UserMistake if ref else HostTrouble
    with pytest.raises(expected, match=f"{checkout} cannot be read: .*corrupt") as caught:
        copied(checkout, store, ref)
    assert ("git fsck" in caught.value.hint) is (ref is not None)


@pytest.mark.parametrize("name", ["a:b", 'a"b', r"a\b", "a b"])
def test_commit_of_a_repository_with_any_name(checkout: Path, store: Store, name: str) -> None:
    moved = checkout.rename(checkout.with_name(name))
    assert names(copied(moved, store, "HEAD")) == TRACKED


def test_tracked_products_of_a_build_are_no_sources(checkout: Path, store: Store) -> None:
    """The kernel's Makefile refuses to build from a source that has them."""
    (checkout / ".config").write_text("CONFIG_A=y\n")
    git(checkout, "add", "--force", ".config")
    commit(checkout)
    assert ".config" not in names(copied(checkout, store, "HEAD"))
    (checkout / ".config").write_text("CONFIG_B=y\n")
    git(checkout, "add", "--force", ".config")
    commit(checkout)
    assert ".config" not in names(copied(checkout, store, "HEAD"))
    assert ".config" not in names(copied(checkout, store))


def test_commits_share_the_copy_with_the_working_tree(checkout: Path, store: Store) -> None:
    edit(checkout, fork="second")
    second = commit(checkout)
    edit(checkout, fork="dirty")
    before = everything(checkout)
    copy = copied(checkout, store)
    at_first = times(copy)
    assert copied(checkout, store, "v6.13-rc2") == copy
    assert (copy / "kernel/fork.c").read_text() == "fork\n"
    assert rewritten(at_first, copy) == {"kernel/fork.c"}
    assert names(copy) == TRACKED
    copied(checkout, store, second[:9])
    assert (copy / "kernel/fork.c").read_text() == "second\n"
    assert everything(checkout) == before
    entry = entry_of(checkout, second, store, silent)
    assert entry.kernel_id == f"tree-6.13-rc2-{second[:12]}"


def test_commit_of_a_bare_repository_or_a_subdirectory(
    checkout: Path, store: Store, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(checkout), "bare.git")
    assert names(copied(tmp_path / "bare.git", store, "v6.13-rc2")) == TRACKED
    outer = tmp_path / "outer"
    outer.mkdir()
    shutil.rmtree(checkout / ".git")
    shutil.move(checkout, outer / "linux")
    git(outer, "init", "-q")
    git(outer, "add", "-A")
    commit(outer)
    assert names(copied(outer / "linux", store, "HEAD")) == SOURCES
    assert names(copied(outer / "linux", store)) == SOURCES


def test_records_stay_while_a_tree_is_read(
    tree: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = UsersTree.snapshot

    def collected(users: UsersTree) -> Snapshot:
        with pytest.raises(StoreBusy):
            gc.collect(store, (), gc.Bound(keep=0, every=True), now=time.time() + 2 * gc.GRACE_S)
        return read(users)

    monkeypatch.setattr(gc, "_WAIT_S", 0.1)
    monkeypatch.setattr(UsersTree, "snapshot", collected)
    copied(tree, store)


def test_interrupted_copy_is_completed(
    tree: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied(tree, store)
    edit(tree, fork="spoon", kexec="spoon")

    def interrupted(*_: object) -> None:
        (copy / "kernel/fork.c").write_text("sp")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(WorkTree, "_copy", interrupted)
        with pytest.raises(KeyboardInterrupt):
            copied(tree, store)
    edit(tree, fork="fork")
    copied(tree, store)
    assert (copy / "kernel/fork.c").read_text() == "fork\n"
    assert (copy / "kernel/kexec.c").read_text() == "spoon\n"


def test_pruned_commit_is_copied_again(checkout: Path, store: Store) -> None:
    edit(checkout, fork="for a moment")
    git(checkout, "checkout", "-q", "-b", "short")
    gone = commit(checkout)
    copy = copied(checkout, store, gone)
    git(checkout, "checkout", "-q", "--detach", "v6.13-rc2")
    git(checkout, "branch", "-q", "-D", "short")
    git(checkout, "reflog", "expire", "--expire=now", "--all")
    git(checkout, "gc", "-q", "--prune=now")
    copied(checkout, store, "HEAD")
    assert (copy / "kernel/fork.c").read_text() == "fork\n"
