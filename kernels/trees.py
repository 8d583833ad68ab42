"""A tree of the user's as a kernel to build: its content, and what its release needs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

from kernels import tools
from kernels.catalog import (
    ABI_OF_RELEASE,
    NEWEST,
    TREE,
    Catalog,
    KernelEntry,
    Source,
    load_catalog,
)
from kernels.errors import UserMistake
from kernels.git import TOOLS
from kernels.progress import Progress
from kernels.store import Store
from kernels.worktrees import WorkTree

_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]+")
_SHORT = 12
# The end of a package's name, so that trees of the same name have copies of their own.
_PLACE = 8


def entry_of(directory: Path, ref: str | None, store: Store, progress: Progress) -> KernelEntry:
    """What a tree is at this moment, or at a commit of its repository.

    Its name is `tree-RELEASE` or `tree-RELEASE-COMMIT`, its revision the id of the content.
    Raises MissingTool, UserMistake for what is no kernel tree, too old, or no commit.
    """
    tools.require(TOOLS)
    directory = directory.resolve()
    source = Source(TREE, _package(directory), tree=directory, ref=ref)
    snapshot = WorkTree(source, store, progress).snapshot()
    template = _closest(load_catalog(), snapshot.number, directory)
    name = f"tree-{_NOT_IN_NAMES.sub('-', snapshot.number.lower())}"
    if snapshot.commit is not None:
        name += f"-{snapshot.commit[:_SHORT]}"
    return replace(
        template,
        name=name,
        abi=ABI_OF_RELEASE,
        # The commit itself from now on: a branch moves.
        source=replace(source, ref=snapshot.commit),
        default=False,
        revision=snapshot.tree,
    )


def _package(directory: Path) -> str:
    place = hashlib.sha256(str(directory).encode(errors="surrogateescape")).hexdigest()[:_PLACE]
    return f"tree-{_NOT_IN_NAMES.sub('-', directory.name.lower())}-{place}"


def _closest(catalog: Catalog, number: str, directory: Path) -> KernelEntry:
    """The entry of the last release that is not newer; of any newer one, that of mainline."""
    series = _series(number)
    numbered = {_series(entry.name): entry for entry in catalog.entries.values() if _plain(entry)}
    if series < min(numbered):
        first = ".".join(map(str, min(numbered)))
        raise UserMistake(
            f"{directory} is Linux {number}, and the catalog begins with {first}",
            f"give a tree of Linux {first} or later, or a built image: --image FILE",
        )
    if series > max(numbered):
        return _newest(catalog)
    return numbered[max(each for each in numbered if each <= series)]


def _plain(entry: KernelEntry) -> bool:
    """Whether an entry is just a release: no variant, and named by its number."""
    return not entry.variant and re.fullmatch(r"\d+\.\d+", entry.name) is not None


def _newest(catalog: Catalog) -> KernelEntry:
    return next(one for one in catalog.entries.values() if one.source.series == NEWEST)


def _series(number: str) -> tuple[int, int]:
    version, level = re.findall(r"\d+", number)[:2]
    return int(version), int(level)
