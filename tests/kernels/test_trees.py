"""Trees of the user's: what they are built as, what is copied again, and that they are but read."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernels.build import ensure
from kernels.catalog import load_catalog
from kernels.errors import HostTrouble, UserMistake
from kernels.progress import silent
from kernels.request import Request
from kernels.store import Store
from kernels.trees import entry_of
from kernels.worktrees import WorkTree
from tests.kernels.fake_make import FakeMake

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 13\nSUBLEVEL = 0\nEXTRAVERSION = -rc2\nNAME = x\n"
FILES = {
    "Makefile": MAKEFILE,
    ".gitignore": "*.o\n.*\n!.gitignore\n/vmlinux\n",
    "init/main.c": "int main;\n",
    "kernel/fork.c": "fork\n",
    "kernel/kexec.c": "kexec\n",
    "scripts/run.sh": "#!/bin/sh\n",
}
# The .gitignore of a packaged source has this at its end.
PACKAGED = "/*\n!/debian/\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A kernel tree that was built in place."""
    tree = tmp_path / "linux"
    for name, text in FILES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (tree / "scripts/run.sh").chmod(0o755)
    (tree / "kernel/link.c").symlink_to("fork.c")
    for product in ("vmlinux", ".config", "kernel/fork.o"):
        (tree / product).write_text("product")
    return tree


@pytest.fixture
def checkout(tree: Path) -> Path:
    """The same as a git repository, where one file is tracked though it is ignored."""
    (tree / "kernel/blob.o").write_text("tracked all the same")
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "add", "-f", "kernel/blob.o")
    commit(tree)
    git(tree, "tag", "v6.13-rc2")
    return tree


def git(tree: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", str(tree), *identity, *words],
        env={"PATH": os.environ["PATH"], "HOME": str(tree.parent), "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def commit(tree: Path) -> str:
    git(tree, "commit", "-q", "-a", "--allow-empty", "-m", "x")
    return git(tree, "rev-parse", "HEAD")


def everything(tree: Path) -> dict[str, tuple[object, ...]]:
    """Every path with its times, kind, size and content, git's own files included."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted([tree, *tree.rglob("*")]):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        times = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        found[str(path)] = (*times, status.st_mode, status.st_size, content)
    return found


def copied(tree: Path, store: Store, ref: str | None = None) -> Path:
    """The copy of a tree after it was brought in step."""
    entry = entry_of(tree, ref, store, silent)
    work = WorkTree(entry.source, store, silent)
    with store.locked("a test", silent):
        assert work.follow(1) == entry.revision
    return work.path


def names(copy: Path) -> set[str]:
    return {str(path.relative_to(copy)) for path in copy.rglob("*") if not path.is_dir()}


def times(copy: Path) -> dict[str, int]:
    return {name: (copy / name).lstat().st_mtime_ns for name in names(copy)}


def rewritten(before: dict[str, int], copy: Path) -> set[str]:
    return {name for name, when in times(copy).items() if before.get(name) != when}


SOURCES = {*FILES, "kernel/link.c"}


def test_what_a_tree_is_built_as(tree: Path, store: Store) -> None:
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


@pytest.mark.parametrize("packaged", [False, True])
def test_a_copy_has_the_sources_and_no_products(tree: Path, store: Store, packaged: bool) -> None:
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


def test_only_what_differs_is_written_again(tree: Path, store: Store) -> None:
    copy = copied(tree, store)
    before = times(copy)
    os.utime(tree / "kernel/kexec.c")
    (tree / "kernel/fork.c").write_text("spoon\n")
    (tree / "init/main.c").chmod(0o755)
    assert copied(tree, store) == copy
    assert rewritten(before, copy) == {"kernel/fork.c"}
    assert os.access(copy / "init/main.c", os.X_OK)


def test_an_edit_of_the_same_size_at_once_is_seen(tree: Path, store: Store) -> None:
    """In the second of the last reading, which is as fine as git looks."""
    copy = copied(tree, store)
    for text in ("knif\n", "spon\n", "dish\n"):
        (tree / "kernel/fork.c").write_text(text)
        copied(tree, store)
        assert (copy / "kernel/fork.c").read_text() == text


def test_an_edit_of_the_same_size_with_an_old_time_is_seen(tree: Path, store: Store) -> None:
    copy = copied(tree, store)
    status = (tree / "kernel/fork.c").stat()
    time.sleep(1.1)
    (tree / "kernel/fork.c").write_text("knif\n")
    os.utime(tree / "kernel/fork.c", ns=(status.st_atime_ns, status.st_mtime_ns))
    copied(tree, store)
    assert (copy / "kernel/fork.c").read_text() == "knif\n"


def test_a_tree_that_changes_while_it_is_copied(
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
    with store.locked("a test", silent):
        work.follow(1)
        assert (work.path / "kernel/fork.c").read_text() == "round 1\n"
        assert len(rounds) == 3
        wanted = 1 << 30
        (tree / "kernel/fork.c").write_text("once more\n")
        with pytest.raises(HostTrouble, match="changes faster than it can be read, last kernel"):
            work.follow(1)


def test_what_is_gone_or_another_kind_of_file(tree: Path, store: Store) -> None:
    copy = copied(tree, store)
    shutil.rmtree(tree / "scripts")
    (tree / "kernel/kexec.c").unlink()
    (tree / "kernel/kexec.c").mkdir()
    (tree / "kernel/kexec.c/deep.c").write_text("deep\n")
    (tree / "kernel/link.c").unlink()
    (tree / "kernel/link.c").write_text("no link\n")
    copied(tree, store)
    assert names(copy) == (SOURCES | {"kernel/kexec.c/deep.c"}) - {
        "scripts/run.sh",
        "kernel/kexec.c",
    }
    assert not (copy / "scripts").exists()
    assert (copy / "kernel/link.c").read_text() == "no link\n"
    shutil.rmtree(tree / "kernel/kexec.c")
    (tree / "kernel/kexec.c").write_text("kexec\n")
    copied(tree, store)
    assert (copy / "kernel/kexec.c").read_text() == "kexec\n"


def test_a_dirty_checkout(checkout: Path, store: Store) -> None:
    (checkout / "kernel/fork.c").write_text("edited\n")
    (checkout / "kernel/new.c").write_text("new\n")
    (checkout / "kernel/kexec.c").unlink()
    before = everything(checkout)
    copy = copied(checkout, store)
    assert names(copy) == (SOURCES | {"kernel/new.c", "kernel/blob.o"}) - {"kernel/kexec.c"}
    assert (copy / "kernel/fork.c").read_text() == "edited\n"
    assert everything(checkout) == before
    git(checkout, "rm", "-q", "--cached", "kernel/blob.o")
    assert names(copied(checkout, store)) == names(copy)
    assert not (copy / "kernel/blob.o").exists()


def test_commits_share_the_copy_with_the_tree_as_it_is(checkout: Path, store: Store) -> None:
    (checkout / "kernel/fork.c").write_text("second\n")
    second = commit(checkout)
    (checkout / "kernel/fork.c").write_text("dirty\n")
    before = everything(checkout)
    copy = copied(checkout, store)
    at_first = times(copy)
    assert copied(checkout, store, "v6.13-rc2") == copy
    assert (copy / "kernel/fork.c").read_text() == "fork\n"
    assert rewritten(at_first, copy) == {"kernel/fork.c"}
    assert names(copy) == {*SOURCES, "kernel/blob.o"}
    copied(checkout, store, second[:9])
    assert (copy / "kernel/fork.c").read_text() == "second\n"
    assert everything(checkout) == before
    entry = entry_of(checkout, second, store, silent)
    assert entry.kernel_id == f"tree-6.13-rc2-{second[:12]}"


def test_a_commit_of_a_bare_repository_and_of_a_directory_in_one(
    checkout: Path, store: Store, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(checkout), "bare.git")
    assert names(copied(tmp_path / "bare.git", store, "v6.13-rc2")) == {*SOURCES, "kernel/blob.o"}
    outer = tmp_path / "outer"
    outer.mkdir()
    shutil.rmtree(checkout / ".git")
    shutil.move(checkout, outer / "linux")
    git(outer, "init", "-q")
    git(outer, "add", "-A")
    commit(outer)
    assert names(copied(outer / "linux", store, "HEAD")) == SOURCES
    assert names(copied(outer / "linux", store)) == SOURCES


def test_the_same_content_is_the_same_kernel(checkout: Path, store: Store) -> None:
    as_it_is = entry_of(checkout, None, store, silent)
    assert entry_of(checkout, "HEAD", store, silent).revision == as_it_is.revision


def test_a_copy_that_was_interrupted_is_completed(
    tree: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied(tree, store)
    (tree / "kernel/fork.c").write_text("spoon\n")
    (tree / "kernel/kexec.c").write_text("spoon\n")

    def interrupted(*_: object) -> None:
        (copy / "kernel/fork.c").write_text("sp")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(WorkTree, "_copy", interrupted)
        with pytest.raises(KeyboardInterrupt):
            copied(tree, store)
    (tree / "kernel/fork.c").write_text("fork\n")
    copied(tree, store)
    assert (copy / "kernel/fork.c").read_text() == "fork\n"
    assert (copy / "kernel/kexec.c").read_text() == "spoon\n"


def test_a_commit_that_was_pruned_is_no_obstacle(checkout: Path, store: Store) -> None:
    (checkout / "kernel/fork.c").write_text("for a moment\n")
    git(checkout, "checkout", "-q", "-b", "short")
    gone = commit(checkout)
    copy = copied(checkout, store, gone)
    git(checkout, "checkout", "-q", "--detach", "v6.13-rc2")
    git(checkout, "branch", "-q", "-D", "short")
    git(checkout, "reflog", "expire", "--expire=now", "--all")
    git(checkout, "gc", "-q", "--prune=now")
    copied(checkout, store, "HEAD")
    assert (copy / "kernel/fork.c").read_text() == "fork\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("rm -r linux", "linux is no kernel tree: there is no such directory"),
        ("rm linux/Makefile", "is no kernel tree: it has no Makefile"),
        ("rm linux/init/main.c", "is no kernel tree: it has no init/main.c"),
        ("echo all: > linux/Makefile", "its Makefile names no VERSION"),
        ("sed -i s/13/4/ linux/Makefile; sed -i s/6/4/ linux/Makefile", "is Linux 4.4-rc2, and"),
    ],
)
def test_what_is_no_tree_to_judge(tree: Path, store: Store, change: str, said: str) -> None:
    subprocess.run(change, shell=True, cwd=tree.parent, check=True)
    with pytest.raises(UserMistake, match=said):
        entry_of(tree, None, store, silent)


def test_a_ref_that_is_not_there(checkout: Path, store: Store, tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match=r"has no commit 'v6\.13-rc3'") as caught:
        entry_of(checkout, "v6.13-rc3", store, silent)
    assert caught.value.mend == "did you mean v6.13-rc2?"
    for ref in ("--all", "qqqq"):
        with pytest.raises(UserMistake, match="has no commit") as caught:
            entry_of(checkout, ref, store, silent)
        assert "fetch it" in caught.value.mend
    shutil.rmtree(checkout / ".git")
    with pytest.raises(UserMistake, match="is no git repository") as caught:
        entry_of(checkout, "HEAD", store, silent)
    assert "leave out --ref" in caught.value.mend


def test_a_tree_is_built_and_built_again_in_the_same_place(
    tree: Path, store: Store, make: FakeMake
) -> None:
    request = Request(tree=tree)
    before = everything(tree)
    first = ensure(request.entry(store), store)
    assert first.kernel_id == "tree-6.13-rc2"
    assert ensure(request.entry(store), store) == first
    made = len(make.diary)
    assert everything(tree) == before
    (tree / "kernel/fork.c").write_text("spoon\n")
    second = ensure(request.entry(store), store)
    assert second.image != first.image
    assert len(make.diary) == 2 * made
    assert len({line.split()[1] for line in make.diary}) == 1
    assert len(list(store.objects.glob("*/*"))) == 1
    (tree / "kernel/fork.c").write_text("fork\n")
    assert ensure(request.entry(store), store) == first
    assert len(make.diary) == 2 * made


def test_what_was_edited_while_it_waited_is_built_as_it_is_then(
    tree: Path, store: Store, make: FakeMake
) -> None:
    entry = Request(tree=tree).entry(store)
    (tree / "kernel/fork.c").write_text("spoon\n")
    kernel = ensure(entry, store)
    now = Request(tree=tree).entry(store)
    assert kernel.revision == now.revision != entry.revision
    assert store.lookup(now) is not None
    assert store.lookup(entry) is None


def test_a_patch_is_in_the_copy_for_the_build_only(
    tree: Path, store: Store, make: FakeMake, tmp_path: Path
) -> None:
    patch = tmp_path / "seven.patch"
    patch.write_text("--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-VERSION = 6\n+VERSION = 7\n")
    before = everything(tree)
    entry = Request(tree=tree, patches=(patch,)).entry(store)
    kernel = ensure(entry, store)
    assert kernel.kernel_id == "tree-6.13-rc2+seven"
    assert (make.directory / "seen").read_text().startswith("VERSION = 7\n")
    assert (store.sources / entry.source.package / "Makefile").read_text() == MAKEFILE
    assert everything(tree) == before


def test_a_kernel_of_a_tree_says_so(tree: Path, store: Store) -> None:
    entry = entry_of(tree, None, store, silent)
    assert str(entry.source) == str(tree)
    assert str(replace(entry.source, ref="abc")) == f"abc of {tree}"
