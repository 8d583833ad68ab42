"""The unpacked source trees of a store: one per package and revision, at a fixed path."""

from __future__ import annotations

from pathlib import Path

from host.progress import Progress
from kernels.catalog.entries import DEBIAN_SOURCE, TREE, KernelEntry, Source
from kernels.errors import UnknownRevision
from kernels.patches import journal
from kernels.sources import apt, tarballs
from kernels.sources.archives import unpack
from kernels.sources.offers import Offer, Origin, choose
from kernels.store.store import Store
from kernels.tools import child_process, git, toolchain
from kernels.trees.worktrees import WorkTree

# Files that root unpacks belong to root.
_OURS = ("--no-same-owner",)
# tar runs xz, which since 5.4 decompresses the blocks of a tarball in parallel.
_PARALLEL_XZ = {"XZ_DEFAULTS": "-T0"}


def tools_for(source: Source) -> tuple[str, ...]:
    """The tools that obtaining a source needs (host/packages.txt)."""
    return {DEBIAN_SOURCE: apt.TOOLS, TREE: git.TOOLS}.get(source.kind, tarballs.TOOLS)


class SourceTrees:
    """The unpacked source trees of a store.  Variants use that of their base."""

    def __init__(self, store: Store, progress: Progress) -> None:
        self._store = store
        self._progress = progress

    def path(self, source: Source, revision: str) -> Path:
        """The path of the tree of a revision, the same for every set of patches.

        All contents of a user's tree share one copy.
        """
        name = source.package if source.kind == TREE else f"{source.package}_{revision}"
        return self._store.sources / name

    def stored(self, entry: KernelEntry) -> Path | None:
        """The tree that an entry was last built from, or would be, if it is in the store."""
        revision = self._store.remembered_revision(entry)
        tree = None if revision is None else self.path(entry.source, revision)
        return tree if tree is not None and tree.is_dir() else None

    def copy_of(self, source: Source) -> WorkTree:
        """The copy of a user's tree; a revision is the id of its content."""
        return WorkTree(source, self._store, self._progress)

    def resolve(self, entry: KernelEntry) -> Offer:
        """The exact version to build: the requested one, else the best.

        Raises MissingTool, SourceUnavailable, UnknownRevision.
        """
        toolchain.require(tools_for(entry.source))
        origin = self._origin(entry.source)
        offered = origin.at_hand()
        chosen = choose(offered, entry.revision)
        if chosen is None:
            offered = origin.updated() or offered
            chosen = choose(offered, entry.revision)
        if chosen is not None:
            return chosen
        if offered and entry.revision is not None:
            versions = [offer.version for offer in offered]
            raise UnknownRevision(entry.source.package, entry.revision, versions)
        raise origin.unavailable()

    def obtain(self, entry: KernelEntry, offer: Offer) -> Path:
        """The tree of an offer, fetched and unpacked if it is not in the store.

        Its lock must be held.  Raises StoreFull, SourceUnavailable.
        """
        tree = self.path(entry.source, offer.version)
        if tree.is_dir():
            return tree
        self._store.require_space(
            offer.fetch_mib + entry.needs.tree_mib, f"unpacking {offer.package} {offer.version}"
        )
        tree.parent.mkdir(exist_ok=True)
        with self._store.workspace() as work:
            self._unpack(offer, offer.fetch(work), work / "tree")
            # A journal may be of another tarball of the same name.
            journal.forget(tree, self._store)
            (work / "tree").rename(tree)
        return tree

    def _origin(self, source: Source) -> Origin:
        if source.kind == DEBIAN_SOURCE:
            return apt.DebianPackage(source, self._store, self._progress)
        return tarballs.Tarballs(source, self._store, self._progress)

    def _unpack(self, offer: Offer, archive: Path, fresh: Path) -> None:
        fresh.mkdir()
        unpack(
            ["tar", "-xf", str(archive), "-C", str(fresh), "--strip-components=1", *_OURS],
            f"unpacking {offer.package} {offer.version}",
            self._store,
            self._progress,
            env=child_process.environment(**_PARALLEL_XZ),
        )
