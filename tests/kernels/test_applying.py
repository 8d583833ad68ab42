"""Patches are in a tree only during a build, and are undone however it ends."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest

from kernels.catalog.patch import Patch
from kernels.errors import BrokenFile, BuildFailed, KernelTrouble, PatchRefused
from kernels.patches import applying, journal
from kernels.store.last_build import ABSENT, Seen
from kernels.store.store import Store

CHANGE = """\
From somebody
Subject: change, create and delete

--- a/kernel/fork.c
+++ b/kernel/fork.c
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
--- /dev/null
+++ b/new/deep/file.c
@@ -0,0 +1 @@
+created
--- a/kernel/exit.c
+++ /dev/null
@@ -1 +0,0 @@
-gone
"""
SECOND = "--- a/kernel/fork.c\n+++ b/kernel/fork.c\n@@ -2,2 +2,2 @@\n TWO\n-three\n+THREE\n"
ALONE = SECOND.replace("TWO", "two")
OLD_NS = 1_000_000_000_123_456_789


@pytest.fixture
def tree(store: Store) -> Path:
    """A source tree of two old files."""
    tree = store.sources / "linux_9.9.3"
    (tree / "kernel").mkdir(parents=True)
    for name, text in (("fork.c", "one\ntwo\nthree\n"), ("exit.c", "gone\n")):
        (tree / "kernel" / name).write_text(text)
        os.utime(tree / "kernel" / name, ns=(OLD_NS, OLD_NS))
    (tree / "kernel/fork.c").chmod(0o755)
    return tree


def content(tree: Path) -> dict[str, tuple[str, int, int]]:
    """Every file's text, time and mode."""
    return {
        str(file.relative_to(tree)): (
            file.read_text(),
            file.stat().st_mtime_ns,
            file.stat().st_mode,
        )
        for file in tree.rglob("*")
        if file.is_file()
    }


@pytest.fixture
def kept(tree: Path) -> Iterator[Path]:
    """The same, which is as it was after the test."""
    before = content(tree)
    yield tree
    assert content(tree) == before
    assert [path.name for path in tree.parent.iterdir()] == [tree.name]


def apply(patches: list[Patch], tree: Path, store: Store) -> None:
    with applying.applied(patches, tree, store):
        pass


def applied_in_a_process(root: Path) -> None:
    """Main function of a child process that is killed while a patch is applied."""
    tree = root / "sources/linux_9.9.3"
    with applying.applied([Patch("change", CHANGE)], tree, Store(root)):
        os.kill(os.getpid(), signal.SIGKILL)


def test_patches_are_applied_in_order_and_undone_with_times(kept: Path, store: Store) -> None:
    with applying.applied([Patch("change", CHANGE), Patch("second", SECOND)], kept, store):
        assert (kept / "kernel/fork.c").read_text() == "one\nTWO\nTHREE\n"
        assert (kept / "kernel/fork.c").stat().st_mtime_ns > OLD_NS
        assert (kept / "new/deep/file.c").read_text() == "created\n"
        assert not (kept / "kernel/exit.c").exists()
    assert not (kept / "new").exists()


def test_patches_are_undone_when_the_build_fails(kept: Path, store: Store) -> None:
    with pytest.raises(ZeroDivisionError), applying.applied([Patch("change", CHANGE)], kept, store):
        raise ZeroDivisionError


def test_patches_are_undone_after_a_killed_builder(tree: Path, store: Store) -> None:
    before = content(tree)
    builder = get_context("spawn").Process(target=applied_in_a_process, args=(store.root,))
    builder.start()
    builder.join(60)
    assert builder.exitcode == -signal.SIGKILL
    assert content(tree) != before
    with applying.applied([], tree, store):
        assert content(tree) == before
    assert [path.name for path in store.sources.iterdir()] == [tree.name]


@pytest.mark.parametrize("times", range(3, 8))
def test_undoing_can_be_interrupted_anywhere(
    kept: Path, store: Store, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    calls = 0

    def interrupted(source: Path, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == times:
            raise KeyboardInterrupt
        copy(source, target)

    copy = shutil.copy2
    monkeypatch.setattr(shutil, "copy2", interrupted)
    with (
        pytest.raises(KeyboardInterrupt) if times <= 6 else pytest.raises(ZeroDivisionError),
        applying.applied([Patch("change", CHANGE)], kept, store),
    ):
        raise ZeroDivisionError
    monkeypatch.undo()
    journal.undo(kept, store)


def test_a_patch_that_does_not_apply_names_file_and_hunk(kept: Path, store: Store) -> None:
    bad = CHANGE.replace("-two", "-zwei") + (
        "--- a/kernel/none.c\n+++ b/kernel/none.c\n@@ -1 +1 @@\n-a\n+b\n"
    )
    with pytest.raises(BuildFailed) as caught:
        apply([Patch("bad", bad)], kept, store)
    assert str(caught.value).startswith("applying patch bad to linux_9.9.3 failed")
    assert caught.value.tail == (
        "kernel/fork.c: hunk 1, at line 1, does not apply",
        "kernel/none.c: no file to patch",
    )
    assert "FAILED" in caught.value.log.read_text()


@pytest.mark.parametrize(
    ("texts", "last_line"),
    [
        ([ALONE] * 2, "kernel/fork.c: reversed (or previously applied) patch detected!"),
        (["words\n"], "Only garbage was found in the patch input."),
    ],
    ids=["applied already", "no diff"],
)
def test_unusable_patch_is_refused(
    kept: Path, store: Store, texts: list[str], last_line: str
) -> None:
    with pytest.raises(BuildFailed) as caught:
        apply([Patch("name", text) for text in texts], kept, store)
    assert last_line in caught.value.tail[-1]


@pytest.mark.parametrize(
    ("text", "files"),
    [
        (CHANGE, {"kernel/fork.c", "new/deep/file.c", "kernel/exit.c"}),
        ("diff --git a/old.c b/renamed.c\nrename from old.c\n", {"old.c", "renamed.c"}),
        ("--- a/x.c\t2024-01-01\n+++ b/x.c\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n", {"x.c"}),
        # A removed line of SQL and an added one of C++ are no header.
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- comment\n+++ counter;\n", {"x"}),
        ("words\n", set()),
    ],
)
def test_touched_files(text: str, files: set[str]) -> None:
    assert set(applying.touched(Patch("name", text))) == files


@pytest.mark.parametrize("file", ["a/../../etc/passwd", "/etc/passwd", "passwd"])
@pytest.mark.parametrize(
    ("origin", "error", "message"),
    [
        (None, KernelTrouble, "patch evil names"),
        (Path("evil.diff"), BrokenFile, r"evil\.diff: names"),
    ],
)
def test_file_outside_the_tree_is_refused(
    tree: Path, store: Store, file: str, origin: Path | None, error: type[Exception], message: str
) -> None:
    evil = Patch("evil", f"--- {file}\n+++ {file}\n@@ -1 +1 @@\n-a\n+b\n", origin)
    with pytest.raises(error, match=f"{message} {file}"):
        apply([evil], tree, store)


def test_diff_without_prefixes_is_refused(tree: Path, store: Store) -> None:
    file = next(str(each.relative_to(tree)) for each in tree.rglob("*") if each.is_file())
    plain = Patch("plain", f"--- {file}\n+++ {file}\n@@ -1 +1 @@\n-a\n+b\n", Path("plain.diff"))
    with pytest.raises(BrokenFile, match=f"its paths lack the prefixes a/ and b/: {file}"):
        apply([plain], tree, store)


@pytest.mark.parametrize(
    "text",
    [
        "diff --git a/x b/y\nsimilarity index 100%\nrename from ../../../etc/passwd\nrename to y\n",
        "diff --git a/x b/y\nsimilarity index 100%\ncopy from /etc/passwd\ncopy to y\n",
        "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to ../../y\n",
        # Written through the link that the first part creates.
        "diff --git a/d b/d\nnew file mode 120000\n--- /dev/null\n+++ b/d\n@@ -0,0 +1 @@\n+/tmp\n"
        "--- /dev/null\n+++ b/d/x\n@@ -0,0 +1 @@\n+evil\n",
        "diff --git a/sub b/sub\nindex 1111111..2222222 160000\n--- a/sub\n+++ b/sub\n"
        "@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n",
        "--- a/out/x\n+++ b/out/x\n@@ -1 +1 @@\n-a\n+b\n",
    ],
    ids=["rename", "copy", "rename to", "link", "submodule", "directory"],
)
def test_ways_out_of_the_tree_are_refused(
    tree: Path, store: Store, tmp_path: Path, text: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("a\n")
    (tree / "out").symlink_to(outside)
    (tree / "x").write_text("a\n")
    before = content(store.sources)
    with pytest.raises(BrokenFile):
        apply([Patch("evil", text, Path("evil.diff"))], tree, store)
    assert content(store.sources) == before
    assert [(each.name, each.read_text()) for each in outside.iterdir()] == [("x", "a\n")]


def test_quoted_names_are_refused(kept: Path, store: Store) -> None:
    """patch(1) accepts git's quoted names, this suite does not."""
    text = '--- "a/\\056\\056/evil"\n+++ "b/\\056\\056/evil"\n@@ -0,0 +1 @@\n+x\n'
    with pytest.raises(PatchRefused):
        apply([Patch("evil", text, Path("evil.diff"))], kept, store)


def test_failing_patch_of_the_user_is_a_user_mistake(
    kept: Path, store: Store, tmp_path: Path
) -> None:
    first = Patch("ok.diff", ALONE, tmp_path / "ok.diff")
    second = Patch("fix.mbox 2/2 (a title)", SECOND, tmp_path / "fix.mbox")
    with pytest.raises(PatchRefused) as caught:
        apply([first, second], kept, store)
    assert str(caught.value) == (
        "fix.mbox 2/2 (a title) does not apply to linux_9.9.3: "
        "kernel/fork.c: hunk 1, at line 2, does not apply"
    )


FORK, EXIT, NEW = "kernel/fork.c", "kernel/exit.c", "new/deep/file.c"


def seen(tree: Path, store: Store, text: str, before: dict[str, Seen]) -> applying.Patched:
    """The files that make sees, and whether they differ from the tree's."""
    with applying.applied([Patch("change", text)] if text else [], tree, store, before) as patched:
        for file, each in patched.files.items():
            found = Seen.of(tree / file)
            assert found == (each if each.digest != ABSENT else Seen(ABSENT))
    return patched


def test_times_follow_content(kept: Path, store: Store) -> None:
    first = seen(kept, store, CHANGE, {})
    assert set(first.differing) == {FORK, EXIT, NEW}
    again = seen(kept, store, CHANGE, dict(first.files))
    assert again.differing == ()
    assert again.files == first.files
    edited = seen(kept, store, CHANGE.replace("+TWO", "+Two"), dict(first.files))
    assert edited.differing == (FORK,)
    assert edited.files[FORK].mtime_ns > first.files[FORK].mtime_ns
    assert edited.files[NEW] == first.files[NEW]


def test_file_that_is_no_longer_patched_is_new_to_make(tree: Path, store: Store) -> None:
    pristine = content(tree)
    first = seen(tree, store, CHANGE, {})
    with applying.applied([Patch("second", ALONE)], tree, store, first.files) as patched:
        assert set(patched.differing) == {FORK, EXIT, NEW}
        assert (tree / EXIT).stat().st_mtime_ns > first.files[FORK].mtime_ns
        assert set(patched.files) == {FORK}
    assert content(tree) == pristine
    with applying.applied([], tree, store, first.files) as patched:
        assert (tree / FORK).stat().st_mtime_ns > first.files[FORK].mtime_ns
        assert (tree / FORK).read_text() == "one\ntwo\nthree\n"
        assert patched.files == {}
    assert content(tree) == pristine


def test_patch_that_the_tree_contains_meanwhile(tree: Path, store: Store) -> None:
    first = seen(tree, store, CHANGE, {})
    (tree / FORK).write_text("one\nTWO\nthree\n")
    with applying.applied([], tree, store, {FORK: first.files[FORK]}) as patched:
        assert patched.differing == ()
        assert (tree / FORK).stat().st_mtime_ns == first.files[FORK].mtime_ns
