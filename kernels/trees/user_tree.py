"""A user's tree as a catalog entry."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, replace
from pathlib import Path

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
_SHORT = 12
# Digits that distinguish trees of the same name.
_PLACE = 8


def entry_of(directory: Path, ref: str | None, store: Store, progress: Progress) -> KernelEntry:
    """The entry of a tree as it is now, or at a commit of its repository.

    Its name is `tree-RELEASE` or `tree-RELEASE-COMMIT`, its revision the id of the content.
    Raises MissingTool, UserMistake if it is no kernel tree, too old, or has no such commit.
    """
    source = _source(directory, ref)
    snapshot = snapshot_of(directory, ref, store, progress)
    catalog = load_catalog()
    template = catalog.like(snapshot.number)
    if template is None:
        of = f"{source.tree} is Linux {snapshot.number}"
        raise UserMistake(
            f"{of}, but the catalog starts with {catalog.first}",
            f"give a tree of Linux {catalog.first} or later, or a built image: --image FILE",
        )
    name = f"tree-{_NOT_IN_NAMES.sub('-', snapshot.number.lower())}"
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


def snapshot_of(directory: Path, ref: str | None, store: Store, progress: Progress) -> Snapshot:
    """The content of a tree, or what `note_snapshot` noted where the directory does not exist.

    Raises what `entry_of` raises.
    """
    if not directory.exists():
        noted = (read_record(_noted(directory, store)) or {}).get(ref or "")
        if isinstance(noted, dict):
            return Snapshot(**noted)
    toolchain.require(TOOLS)
    return WorkTree(_source(directory, ref), store, progress).snapshot()


def note_snapshot(directory: Path, ref: str | None, store: Store, snapshot: Snapshot) -> None:
    """Let a tree of another machine stand for a content whose kernels come from there.

    Raises OSError.
    """
    file = _noted(directory, store)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_record(file, (read_record(file) or {}) | {ref or "": asdict(snapshot)})


def _noted(directory: Path, store: Store) -> Path:
    return store.trees / _source(directory, None).package / "noted.json"


def _source(directory: Path, ref: str | None) -> Source:
    directory = directory.resolve()
    return Source(TREE, _package(directory), tree=directory, ref=ref)


def _package(directory: Path) -> str:
    place = hashlib.sha256(str(directory).encode(errors="surrogateescape")).hexdigest()[:_PLACE]
    return f"tree-{_NOT_IN_NAMES.sub('-', directory.name.lower())}-{place}"
