"""Apply patches to a source tree for the time of a build, and always undo them.

The tree of a patched build is its own: a view of links to the files of the release, or the copy of
a user's tree.  Patches are applied to copies of the files they touch; the tree changes only if all
of them apply.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from msgspec import Struct, field

from host.deadline import Deadline
from kernels.catalog.patch import ENCODING, Patch
from kernels.errors import BrokenFile, BuildFailed, KernelTrouble, Killed, PatchRefused
from kernels.patches import coccinelle, journal
from kernels.patches.diff import Damaged, Diff
from kernels.store.last_build import Seen
from kernels.store.store import Store
from kernels.tools import child_process

# No *.orig and no *.rej: only files of the journal change.
_NO_OTHER_FILES = ("--no-backup-if-mismatch", "--reject-file=-")
# For one patch, on a busy host.
_PATCH_S = 120.0
_NOTHING = "/dev/null"
_MADE = "make it with git diff or diff -ru, whose paths begin with a/ and b/"

# Messages of patch(1).
_FILE = re.compile(r"(?:patching|checking) file '?(.+?)'?(?: \(.*)?")
_ABSENT_FILE = re.compile(r"\|\+\+\+ (?:[^/]+/)?(\S+).*")
_HUNK = re.compile(r"Hunk #(\d+) (?:FAILED|ignored) at (\d+).*")
_SKIPPED = re.compile(r"(Reversed .*|No file to patch).*Skipping patch\.")


class Patched(Struct, frozen=True):
    """A patched tree as make sees it: the files that are not the tree's own, and those whose
    content differs from what the objects were built from.
    """

    files: Mapping[str, Seen] = field(default_factory=dict)
    differing: tuple[str, ...] = ()


@contextmanager
def applied(
    patches: Sequence[Patch], tree: Path, store: Store, before: Mapping[str, Seen] | None = None
) -> Iterator[Patched]:
    """Apply exactly these patches, and undo them at the end.

    `before` are the patched files that the objects were built from; the times of these and of the
    files patched now follow their content (kernels.store.last_build).  The tree must be locked.
    Raises PatchRefused for a patch of the user, BuildFailed for one of the catalog, with file and
    hunk.
    """
    before = before or {}
    journal.undo(tree, store)
    if not patches and not before:
        yield Patched()
        return
    with store.workspace() as work:
        copy = _Copy(tree, work, store)
        copy.apply_all(patches)
        files = tuple(dict.fromkeys((*copy.touched, *before)))
        journal.save(tree, files, store)
        try:
            yield _put_in(copy, files, before)
        finally:
            journal.undo(tree, store)


def check(patches: Sequence[Patch], tree: Path, store: Store) -> None:
    """Raise what `applied` would, and change nothing."""
    with store.workspace() as work:
        _Copy(tree, work, store).apply_all(patches)


def touched(patch: Patch) -> tuple[str, ...]:
    """The files that a diff changes, creates or deletes, relative to the tree.

    Raises BrokenFile (KernelTrouble for the catalog's patches) for a file outside the tree.
    """
    return tuple(dict.fromkeys(_in_tree(name, patch) for name in _names(patch)))


def _names(patch: Patch) -> list[str]:
    """The files as the headers of a diff name them.  Raises what `touched` raises."""
    try:
        return [name for name in Diff(patch.text).names if name != _NOTHING]
    except Damaged as error:
        raise _unusable(patch, str(error), "create it again with git diff") from error


class _Copy:
    """Copies of the files that patches touch."""

    def __init__(self, tree: Path, work: Path, store: Store) -> None:
        self.tree = tree
        self.root = work / "tree"
        self.touched: dict[str, None] = {}
        self._work = work
        self._store = store
        self._copied: set[str] = set()
        self.root.mkdir()

    def apply_all(self, patches: Sequence[Patch]) -> None:
        """Apply patches one after the other."""
        for patch in patches:
            self._apply_one(patch)

    def _apply_one(self, patch: Patch) -> None:
        if patch.semantic:
            names = coccinelle.files(patch, self.tree)
            self._copy(names)
            left = [name for name in names if (self.root / name).is_file()]
            text = coccinelle.diff_of(patch, self.root, left, self._work)
            patch = Patch(patch.name, text, patch.file)
        _require_prefixes(patch, self.tree)
        files = touched(patch)
        for file in files:
            # A directory in the tree can be a link out of it.
            if not (self.tree / file).parent.resolve().is_relative_to(self.tree.resolve()):
                raise _unusable(patch, f"names {file}, which a link leads out of the tree", _MADE)
        self._copy(files)
        self.touched |= dict.fromkeys(files)
        _apply(patch, self, self._store)

    def _copy(self, files: Sequence[str]) -> None:
        for file in files:
            if file not in self._copied and (self.tree / file).is_file():
                (self.root / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.tree / file, self.root / file)
            self._copied.add(file)


def _put_in(copy: _Copy, files: Sequence[str], before: Mapping[str, Seen]) -> Patched:
    """Move the patched files into the tree, with times according to their content."""
    now_ns = time.time_ns()
    patched: dict[str, Seen] = {}
    differing = []
    for file in files:
        target, fresh = copy.tree / file, copy.root / file
        original = Seen.of(target)
        seen = Seen.of(fresh) if file in copy.touched else original
        compiled = before.get(file, original)
        same = seen.digest == compiled.digest
        if not same:
            differing.append(file)
        seen = Seen(seen.digest, compiled.mtime_ns if same else now_ns)
        if file in copy.touched:
            patched[file] = seen
            _replace(fresh, target)
        if target.is_file():
            _set_time(target, seen.mtime_ns)
    return Patched(patched, tuple(differing))


def _set_time(file: Path, mtime_ns: int) -> None:
    """Set the time of this file only: others may be links to it."""
    status = file.stat()
    if status.st_mtime_ns == mtime_ns:
        return
    if status.st_nlink > 1:
        copy = file.with_name(f".{file.name}.copy")
        shutil.copy2(file, copy)
        copy.replace(file)
    os.utime(file, ns=(mtime_ns, mtime_ns))


def _replace(fresh: Path, target: Path) -> None:
    if not fresh.is_file():
        target.unlink(missing_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh.replace(target)


def _in_tree(file: str, patch: Patch) -> str:
    """A path of a diff's header without its first component, as for `patch -p1`."""
    path = PurePosixPath(file)
    inner = PurePosixPath(*path.parts[1:])
    if path.is_absolute() or ".." in path.parts or not inner.parts:
        raise _unusable(patch, f"names {file}, which is not in the source tree", _MADE)
    return str(inner)


def _require_prefixes(patch: Patch, tree: Path) -> None:
    """Refuse a diff whose paths begin at the top of the tree, as with diff.noprefix of git.

    patch(1) would strip a directory of each.
    """
    names = _names(patch)
    tops = {PurePosixPath(name).parts[0] for name in names}
    if tops and not tops & {"/", ".."} and all((tree / top).exists() for top in tops):
        why = f"its paths lack the prefixes a/ and b/: {names[0]}"
        raise _unusable(patch, why, "create it with git diff --src-prefix=a/ --dst-prefix=b/")


def _unusable(patch: Patch, why: str, hint: str) -> BrokenFile | KernelTrouble:
    """BrokenFile for a patch of the user, else KernelTrouble."""
    if patch.file is not None:
        return BrokenFile(patch.file, why, hint)
    return KernelTrouble(f"patch {patch.name} {why}", hint)


def _apply(patch: Patch, copy: _Copy, store: Store) -> None:
    deadline = Deadline(_PATCH_S, f"applying patch {patch.name} to {copy.tree.name}")
    lines: list[str] = []
    with store.workspace() as work:
        file = work / "patch"
        file.write_text(patch.text, **ENCODING)
        argv = ["patch", "-p1", "--batch", "--forward", "--fuzz=0", *_NO_OTHER_FILES]
        status = child_process.run(
            [*argv, f"--input={file}"], cwd=copy.root, deadline=deadline, on_line=lines.append
        )
    if not status:
        return
    if status < 0:
        raise Killed(deadline.what)
    failures = _failures(lines) or lines[-5:]
    if patch.file is not None:
        raise PatchRefused(patch.name, copy.tree.name, failures)
    store.logs.mkdir(exist_ok=True)
    log = store.logs / f"patch-{patch.name}.log"
    log.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    raise BuildFailed(deadline.what, log, failures)


def _failures(lines: Sequence[str]) -> list[str]:
    """File and hunk of each failure that patch(1) reports."""
    file, found = "", []
    for line in lines:
        if named := _FILE.fullmatch(line) or _ABSENT_FILE.fullmatch(line):
            file = named[1]
        elif hunk := _HUNK.fullmatch(line):
            found.append(f"{file}: hunk {hunk[1]}, at line {hunk[2]}, does not apply")
        elif skipped := _SKIPPED.fullmatch(line):
            found.append(f"{file}: {skipped[1].strip().lower()}")
    return found
