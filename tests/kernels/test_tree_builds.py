"""Building trees of the user in their copies."""

from __future__ import annotations

from pathlib import Path

from kernels.build.build import ensure
from kernels.request import Request
from kernels.store.store import Store
from tests.kernels.fake_make import FakeMake
from tests.kernels.user_trees import MAKEFILE, everything


def test_edited_tree_is_rebuilt_in_place(tree: Path, store: Store, make: FakeMake) -> None:
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
    assert (make.directory / "seen").read_text().startswith("VERSION = 7\n")
    assert (store.sources / entry.source.package / "Makefile").read_text() == MAKEFILE
    assert everything(tree) == before
