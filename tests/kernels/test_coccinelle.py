"""Semantic patches: the diff of a fake spatch is applied like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kernels.catalog.patch import Patch
from kernels.errors import BrokenFile
from kernels.patches import applying
from kernels.store.store import Store
from tests.shell_scripts import write_script

EVENTS = "kernel/trace/events.c"
RULE = Patch("errno.cocci", "@@\n@@\n- return -EINVAL;\n+ return -EPERM;\n", semantic=True)
BEFORE = Patch(
    "before", f"--- a/{EVENTS}\n+++ b/{EVENTS}\n@@ -1 +1 @@\n-return -EIO;\n+return -EINVAL;\n"
)
# Logs its arguments, and replaces EINVAL by EPERM.
SPATCH = """\
echo "$*" > {diary}
if grep -q refused {diary}.mode; then echo "bad.cocci: parse error"; exit 255; fi
while test "$1" != --patch; do shift; done
root=$2; shift 4
for file; do
    if grep -q EINVAL "$file"; then
        sed 's/EINVAL/EPERM/' "$file" > {diary}.new
        diff -u "$file" {diary}.new | sed "s,^--- $root,--- a,; s,^+++ .*,+++ b${{file#$root}},"
    fi
done
exit 0
"""


@pytest.fixture
def tree(store: Store) -> Path:
    """A source tree with tracing, a header of user_events, and another file."""
    tree = store.sources / "linux_6.12"
    for name in (EVENTS, "kernel/trace/Makefile", "include/linux/user_events.h", "fs/open.c"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("return -EIO;\n" if name == EVENTS else "return 0;\n")
    return tree


@pytest.fixture
def diary(programs: Path, tmp_path: Path) -> Path:
    """The arguments of spatch."""
    write_script(programs / "spatch", SPATCH.format(diary=tmp_path / "diary"))
    (tmp_path / "diary.mode").touch()
    return tmp_path / "diary"


def test_semantic_patch_follows_earlier_patches(tree: Path, store: Store, diary: Path) -> None:
    with applying.applied([BEFORE, RULE], tree, store) as patched:
        assert (tree / EVENTS).read_text() == "return -EPERM;\n"
        assert patched.differing == (EVENTS,)
    assert (tree / EVENTS).read_text() == "return -EIO;\n"
    named = [word.partition("/tree/")[2] for word in diary.read_text().split() if "/tree/" in word]
    assert named == ["include/linux/user_events.h", EVENTS]


@pytest.mark.parametrize(
    ("rule", "mode", "message"),
    [
        (RULE, "", r"errno\.cocci: matches nothing in kernel/trace and the"),
        (RULE, "refused", r"spatch refuses it: bad\.cocci: parse error"),
        (replace(RULE, places=("drivers",)), "", r"linux_6\.12 has no C source in drivers"),
    ],
    ids=["no match", "invalid", "absent place"],
)
def test_unusable_semantic_patch_is_refused(
    tree: Path, store: Store, diary: Path, rule: Patch, mode: str, message: str
) -> None:
    diary.with_suffix(".mode").write_text(mode)
    with pytest.raises(BrokenFile, match=message), applying.applied([rule], tree, store):
        pytest.fail("it was applied")
