"""A user's tree as a catalog entry."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from msgspec.structs import replace

from host.files import read_record, write_record
from host.progress import Progress
from kernels.catalog.catalog import load_catalog
from kernels.catalog.entries import ABI_OF_RELEASE, TREE, KernelEntry, Source
from kernels.errors import UserMistake
from kernels.store.store import Store
from kernels.tools import toolchain
from kernels.tools.git import TOOLS
from kernels.trees.tree_snapshot import Snapshot
from kernels.trees.worktrees import WorkTree

_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]+")
_TREE = "tree-"
_SHORT = 12
# Digits that distinguish trees of the same name.
_PLACE = 8
# Characters of the name of a directory in the names of files.
_LONGEST_NAME = 40


def entry_of(directory: Path, ref: str | None, store: Store, progress: Progress) -> KernelEntry:
    """The entry of a tree as it is now, or at a commit of its repository.

    Its name is `tree-RELEASE` or `tree-RELEASE-COMMIT`, its revision the id of the content.
    Raises MissingTool, UserMistake if it is no kernel tree, too old, or has no such commit.
    """
    directory = directory.resolve()
    source = Source(TREE, _package(directory), tree=directory, ref=ref)
    snapshot = None if directory.exists() else _noted(source, store)
    if snapshot is None:
        toolchain.require(TOOLS)
        snapshot = WorkTree(source, store, progress).snapshot()
    catalog = load_catalog()
    template = catalog.like(snapshot.number)
    if template is None:
        raise UserMistake(
            f"{directory} is Linux {snapshot.number}, but the catalog starts with {catalog.first}",
            f"give a tree of Linux {catalog.first} or later, or a built image: --image FILE",
        )
    name = f"{_TREE}{_NOT_IN_NAMES.sub('-', snapshot.number.lower())}"
    if snapshot.commit is not None:
        name += f"-{snapshot.commit[:_SHORT]}"
    return replace(
        template,
        name=name,
        abi=ABI_OF_RELEASE,
        # The commit from now on: a branch moves.
        source=replace(source, ref=snapshot.commit),
        default=False,
        revision=snapshot.tree,
    )


def note(entry: KernelEntry, store: Store) -> None:
    """Let `entry_of` find an entry of another machine's tree.  Raises OSError."""
    source = entry.source
    if source.tree is None or source.tree.exists():
        return
    number = entry.name.removeprefix(_TREE).removesuffix(f"-{(source.ref or '')[:_SHORT]}")
    file = _note(source, store)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_record(file, {"tree": entry.revision, "number": number})


def _noted(source: Source, store: Store) -> Snapshot | None:
    known = read_record(_note(source, store))
    if known is None:
        return None
    return Snapshot(str(known["tree"]), str(known["number"]), source.ref)


def _note(source: Source, store: Store) -> Path:
    return store.trees / source.package / f"noted-{source.ref or 'files'}.json"


def _package(directory: Path) -> str:
    place = hashlib.sha256(str(directory).encode(errors="surrogateescape")).hexdigest()[:_PLACE]
    name = _NOT_IN_NAMES.sub("-", directory.name.lower())[:_LONGEST_NAME]
    return f"tree-{name}-{place}"
