"""Patches in a source tree for the time of a build, and out of it again, whatever happens.

All variants of a revision share one tree at one path, so that their objects differ in what the
patches change and in nothing else.  The originals wait in a journal beside the tree, which is
complete and on disk before the first change, and gone only after the last one is undone.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from kernels import child
from kernels.deadline import Deadline
from kernels.errors import BuildFailed, KernelTrouble
from kernels.files import sync
from kernels.store import Store

# Name and text.
Patch = tuple[str, str]

_RECORD = "journal.json"
_ORIGINALS = "originals"
# Neither *.orig nor *.rej: nothing changes but the files of the journal.
_NO_OTHER_FILES = ("--no-backup-if-mismatch", "--reject-file=-")
# How long one patch may take on a machine that is busy with something else.
_PATCH_S = 120.0

# The files of a change: before and after its first hunk, or in git's words where it has none.
_HEADER = re.compile(r"^--- (\S+).*\n\+\+\+ (\S+).*\n@@ ", re.MULTILINE)
_GIT_HEADER = re.compile(r"^diff --git (\S+) (\S+)$", re.MULTILINE)
_NOTHING = "/dev/null"

# What patch(1) says, and about which file it says it.
_FILE = re.compile(r"(?:patching|checking) file '?(.+?)'?(?: \(.*)?")
_ABSENT_FILE = re.compile(r"\|\+\+\+ (?:[^/]+/)?(\S+).*")
_HUNK = re.compile(r"Hunk #(\d+) (?:FAILED|ignored) at (\d+).*")
_SKIPPED = re.compile(r"(Reversed .*|No file to patch).*Skipping patch\.")


@contextmanager
def applied(patches: Sequence[Patch], tree: Path, store: Store) -> Iterator[None]:
    """Have exactly these patches in a tree, and none at the end.

    Call with the store locked.  Raises BuildFailed naming the file and hunk that do not apply.
    """
    undo(tree, store)
    if not patches:
        yield
        return
    _save(tree, touched(patches), store)
    try:
        for name, text in patches:
            _apply(name, text, tree, store)
        yield
    finally:
        undo(tree, store)


def touched(patches: Sequence[Patch]) -> tuple[str, ...]:
    """The files that patches change, create or delete, relative to the tree.

    Raises KernelTrouble for a file outside of it.
    """
    found: dict[str, None] = {}
    for name, text in patches:
        for pair in (*_HEADER.findall(text), *_GIT_HEADER.findall(text)):
            for file in pair:
                if file != _NOTHING:
                    found[_in_tree(file, name)] = None
    return tuple(found)


def undo(tree: Path, store: Store) -> None:
    """Put a tree's originals back, with their times, if a journal says that it is patched.

    Can be interrupted and repeated at any point.
    """
    journal = _journal(tree)
    if not journal.is_dir():
        return
    record = json.loads((journal / _RECORD).read_text(encoding="utf-8"))
    for file in record["originals"]:
        _put_back(journal / _ORIGINALS / file, tree / file)
    for file in record["created"]:
        (tree / file).unlink(missing_ok=True)
    for directory in record["directories"]:
        with suppress(OSError):
            (tree / directory).rmdir()
    forget(tree, store)


def forget(tree: Path, store: Store) -> None:
    """Remove the journal of a tree that is not there any more, if it left one."""
    if _journal(tree).is_dir():
        with store.workspace("journal") as grave:
            _journal(tree).rename(grave / "journal")


def _in_tree(file: str, patch: str) -> str:
    """A path of a patch's header without its first part, as `patch -p1` takes it."""
    path = PurePosixPath(file)
    inner = PurePosixPath(*path.parts[1:])
    if path.is_absolute() or ".." in path.parts or not inner.parts:
        raise KernelTrouble(
            f"patch {patch} names {file}, which is not in the source tree",
            "make it with git diff or diff -ru, whose paths begin with a/ and b/",
        )
    return str(inner)


def _save(tree: Path, files: Sequence[str], store: Store) -> None:
    """Write the journal: it appears whole, and before any file of the tree changes."""
    journal = _journal(tree)
    originals = [file for file in files if (tree / file).is_file()]
    created = [file for file in files if file not in originals]
    record = {
        "originals": originals,
        "created": created,
        "directories": _absent_parents(tree, created),
    }
    with store.workspace("journal") as work:
        fresh = work / "journal"
        (fresh / _ORIGINALS).mkdir(parents=True)
        for file in originals:
            copy = fresh / _ORIGINALS / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / file, copy)
            sync(copy)
        (fresh / _RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")
        for path in (fresh / _RECORD, *(p for p in fresh.rglob("*") if p.is_dir()), fresh):
            sync(path)
        fresh.rename(journal)
        sync(journal.parent)


def _put_back(original: Path, file: Path) -> None:
    """Replace a file by its original at once: a reader sees the one or the other."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.original")
    shutil.copy2(original, fresh)
    sync(fresh)
    fresh.replace(file)


def _absent_parents(tree: Path, files: Sequence[str]) -> list[str]:
    """The directories that creating these files will create, the deepest first."""
    parents = {
        parent
        for file in files
        for parent in PurePosixPath(file).parents
        if parent.parts and not (tree / parent).is_dir()
    }
    return [str(parent) for parent in sorted(parents, key=lambda path: -len(path.parts))]


def _journal(tree: Path) -> Path:
    return tree.with_name(f"{tree.name}.journal")


def _apply(name: str, text: str, tree: Path, store: Store) -> None:
    deadline = Deadline(_PATCH_S, f"applying patch {name} to {tree.name}")
    lines: list[str] = []
    with store.workspace("patch") as work:
        file = work / "patch"
        file.write_text(text, encoding="utf-8")
        argv = ["patch", "-p1", "--batch", "--forward", "--fuzz=0", *_NO_OTHER_FILES]
        # As a child that ends with us: one that went on would patch what the next one restored.
        status = child.run(
            [*argv, f"--input={file}"], cwd=tree, deadline=deadline, on_line=lines.append
        )
    if status:
        store.logs.mkdir(exist_ok=True)
        log = store.logs / f"patch-{name}.log"
        log.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        raise BuildFailed(deadline.what, log, _failures(lines) or lines[-5:])


def _failures(lines: Sequence[str]) -> list[str]:
    """File and hunk of everything that patch(1) says it could not apply."""
    file, found = "", []
    for line in lines:
        if named := _FILE.fullmatch(line) or _ABSENT_FILE.fullmatch(line):
            file = named[1]
        elif hunk := _HUNK.fullmatch(line):
            found.append(f"{file}: hunk {hunk[1]}, at line {hunk[2]}, does not apply")
        elif skipped := _SKIPPED.fullmatch(line):
            found.append(f"{file}: {skipped[1].strip().lower()}")
    return found
