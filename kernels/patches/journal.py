"""The journal of a patched tree: its original files, until the patches are undone.

It is complete and on disk before the first change, and removed after the last one is undone.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from host.files import sync, write_record
from kernels.store.store import Store

_RECORD = "journal.json"
_ORIGINALS = "originals"


def save(tree: Path, files: Sequence[str], store: Store) -> None:
    """Write the journal atomically, before any file of the tree changes."""
    journal = journal_of(tree)
    originals = [file for file in files if (tree / file).is_file()]
    created = [file for file in files if file not in originals]
    record = {
        "originals": originals,
        "created": created,
        "directories": _absent_parents(tree, created),
    }
    with store.workspace() as work:
        fresh = work / "journal"
        (fresh / _ORIGINALS).mkdir(parents=True)
        for file in originals:
            copy = fresh / _ORIGINALS / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / file, copy)
            sync(copy)
        write_record(fresh / _RECORD, record)
        for path in (*(p for p in fresh.rglob("*") if p.is_dir()), fresh):
            sync(path)
        fresh.rename(journal)
        sync(journal.parent)


def undo(tree: Path, store: Store) -> None:
    """Restore a tree's originals and their times, if a journal exists.

    Can be interrupted and repeated at any point.
    """
    journal = journal_of(tree)
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
    """Remove the journal of a tree that no longer exists."""
    if journal_of(tree).is_dir():
        with store.workspace() as trash:
            journal_of(tree).rename(trash / "journal")


def _put_back(original: Path, file: Path) -> None:
    """Replace a file by its original atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.original")
    shutil.copy2(original, fresh)
    sync(fresh)
    fresh.replace(file)


def _absent_parents(tree: Path, files: Sequence[str]) -> list[str]:
    """The directories that these files will create, the deepest first."""
    parents = {
        parent
        for file in files
        for parent in PurePosixPath(file).parents
        if parent.parts and not (tree / parent).is_dir()
    }
    return [str(parent) for parent in sorted(parents, key=lambda path: -len(path.parts))]


def journal_of(tree: Path) -> Path:
    """The journal of a tree; it need not exist."""
    return tree.with_name(f"{tree.name}.journal")
