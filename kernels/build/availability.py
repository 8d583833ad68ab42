"""Which kernels of the catalog are built or can be built here, without network access.

What a mirror offers is unknown then: such a kernel "has to be fetched".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from host import packages
from host.progress import silent
from kernels.build.build import needed_tools
from kernels.catalog.entries import DEBIAN_SOURCE, TARBALL, KernelEntry, Source
from kernels.errors import KernelsError, MissingTool, SourceUnavailable, UnknownRevision
from kernels.sources import apt
from kernels.sources.mirror import KERNEL_ORG
from kernels.sources.mirror import VARIABLE as MIRROR
from kernels.sources.offers import matching
from kernels.sources.tarballs import VARIABLE as TARBALLS
from kernels.sources.tarballs import NotFetched, Tarballs
from kernels.sources.unpacked import SourceTrees
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store

NOT_FETCHED = (
    f"uevt kernels build KERNEL fetches the tarball from {KERNEL_ORG} or from {MIRROR};"
    f" {TARBALLS} names a directory of tarballs"
)


class State(StrEnum):
    """Where the image of a kernel would come from."""

    BUILT = "built"
    BUILDABLE = "can be built"
    FETCHABLE = "has to be fetched"
    UNBUILDABLE = "cannot be built here"


class Availability(Struct, frozen=True):
    """What this host can do about one entry: `built`, or `problem` if nothing."""

    entry: KernelEntry
    built: BuiltKernel | None = None
    problem: KernelsError | None = None

    @property
    def state(self) -> State:
        """The state in short."""
        if self.built is not None:
            return State.BUILT
        if self.problem is None:
            return State.BUILDABLE
        return State.FETCHABLE if isinstance(self.problem, NotFetched) else State.UNBUILDABLE

    def __str__(self) -> str:
        if self.built is None and self.problem is not None:
            return f"{self.state}: {self.problem.with_hint}"
        return self.short

    @property
    def short(self) -> str:
        """The state, and the version of a built kernel."""
        if self.built is None:
            return str(self.state)
        release, revision = self.built.release, self.built.revision
        # A distribution's revision begins with the release.
        version = revision if revision.startswith(release) else f"{release} ({revision})"
        return f"{self.state}, {version}"

    @property
    def note(self) -> str:
        """Why a kernel is not built and what to do; equal for kernels with the same problem."""
        if isinstance(self.problem, NotFetched):
            return NOT_FETCHED
        return self.problem.with_hint if self.problem is not None else ""

    def to_json(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "kernel": self.entry.kernel_id,
            "of": self.entry.of,
            "default": self.entry.default,
            "source": str(self.entry.source),
            "state": self.state,
            "release": self.built and self.built.release,
            "revision": self.built and self.built.revision,
            "image": self.built and str(self.built.image),
            "why": self.problem and str(self.problem),
            "hint": self.problem and self.problem.hint,
        }


def survey(entries: Iterable[KernelEntry], store: Store) -> tuple[Availability, ...]:
    """The availability of each entry, in order."""
    found = [Availability(entry, built=store.lookup(entry)) for entry in entries]
    host = _Host([one.entry for one in found if one.built is None], store)
    return tuple(
        one if one.built is not None else Availability(one.entry, problem=host.problem(one.entry))
        for one in found
    )


class _Host:
    """What this host provides for some entries; each source is queried once."""

    def __init__(self, entries: Sequence[KernelEntry], store: Store) -> None:
        self._store = store
        trees = SourceTrees(store, silent)
        at_hand = {entry.kernel_id: trees.stored(entry) is not None for entry in entries}
        self._needed = {
            entry.kernel_id: needed_tools(entry, at_hand=at_hand[entry.kernel_id])
            for entry in entries
        }
        self._absent = packages.missing(name for names in self._needed.values() for name in names)
        unseen = {entry.source for entry in entries if not at_hand[entry.kernel_id]}
        has_apt = "apt-cache" not in self._absent
        self._offered = _offered(unseen, store, has_apt=has_apt)

    def problem(self, entry: KernelEntry) -> KernelsError | None:
        """Why an entry cannot be built, or None."""
        absent = [name for name in self._absent if name in self._needed[entry.kernel_id]]
        if "apt-cache" in absent:
            return apt.no_apt(entry.source)
        if absent:
            return MissingTool(absent)
        if entry.source not in self._offered:
            return None  # the source tree is in the store
        return _unoffered(entry, self._offered[entry.source], self._store)


def _offered(
    sources: Collection[Source], store: Store, *, has_apt: bool
) -> dict[Source, tuple[str, ...]]:
    """The versions of each source that are known on this host."""
    packages = [source for source in sources if source.kind == DEBIAN_SOURCE]
    listed = apt.known(packages, store) if packages and has_apt else {}
    return {
        source: listed.get(source, ())
        if source.kind == DEBIAN_SOURCE
        else tuple(offer.version for offer in Tarballs(source, store, silent).at_hand())
        for source in sources
    }


def _unoffered(entry: KernelEntry, versions: Sequence[str], store: Store) -> KernelsError | None:
    """The error if no known version serves the entry, or None."""
    if matching(versions, entry.revision) is not None:
        return None
    if entry.source.kind == TARBALL:
        return Tarballs(entry.source, store, silent).not_fetched(entry.kernel_id)
    if versions and entry.revision is not None:
        return UnknownRevision(entry.source.package, entry.revision, versions)
    return SourceUnavailable(
        f"{entry.source} is not in this host's package lists",
        f"uevt kernels build {entry.kernel_id} updates them",
    )
