"""Kernels that can be built: source, configuration, patches, and the ABI to judge by."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from msgspec import Struct

from kernels.catalog.patch import Patch

DEBIAN_SOURCE = "debian-source"
TARBALL = "tarball"
# A tree of the user; never in a catalog file.
TREE = "tree"
# `series = "newest"`: the newest tarball of all.
NEWEST = "newest"
# `abi = "release"`: judge by the ABI of the release that was built.
ABI_OF_RELEASE = "release"

# VERSION.PATCHLEVEL[.SUBLEVEL][-rcN] of `uname -r`, without what localversion adds.
_RELEASE = re.compile(r"\d+\.\d+(?:\.\d+)?(?:-rc\d+)?")
_SERIES = re.compile(r"\d+\.\d+")


class Source(Struct, frozen=True):
    """Origin of the source: a distribution's package, an upstream tarball, a tree of the user.

    `suite` is the distribution's suite that has the package if the host's own may not,
    `series` the releases that a tarball may be of, `tree` the directory of a user's tree and
    `ref` a commit of its repository (None: the working tree).
    """

    kind: str
    package: str
    suite: str | None = None
    series: str | None = None
    tree: Path | None = None
    ref: str | None = None

    def __str__(self) -> str:
        if self.kind == TREE:
            return f"{self.ref} of {self.tree}" if self.ref else str(self.tree)
        if self.kind == TARBALL:
            return "any tarball" if self.series == NEWEST else f"tarball of {self.series}"
        return f"{self.package} in {self.suite}" if self.suite else self.package


class Needs(Struct, frozen=True):
    """Disk space in MiB, and an estimate of the objects that a build from scratch compiles."""

    tree_mib: int = 1700
    objects_mib: int = 300
    objects: int = 1300


class KernelEntry(Struct, frozen=True):
    """One kernel that can be built.

    `wanted` are the merged configuration lines, `patches` are in order of application, `make`
    are words for make's command line, `keep` files among the objects that are stored with the
    image.  `revision` is that of `NAME@REVISION` (of a user's tree: the id of its content),
    `label` names what the user added ("+fix~debug").  `of` names the kernel that this one is a
    variant of; `differs` are the switches in which it deviates from its `abi`.
    """

    name: str
    abi: str
    source: Source
    wanted: tuple[str, ...]
    patches: tuple[Patch, ...]
    needs: Needs
    default: bool
    revision: str | None = None
    of: str | None = None
    differs: tuple[str, ...] = ()
    label: str = ""
    make: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()

    @property
    def kernel_id(self) -> str:
        """The name of results and store entries: path-safe and unique."""
        revision = self.revision if self.source.kind != TREE else None
        return (f"{self.name}@{revision}" if revision else self.name) + self.label

    @property
    def objects_name(self) -> str:
        """The name of the objects directory; all contents of a tree share one."""
        return (TREE if self.source.kind == TREE else self.name) + self.label

    @property
    def variant(self) -> bool:
        """Whether it is a kernel with patches of this suite."""
        return self.of is not None

    @property
    def plain(self) -> bool:
        """Whether it is a release, named by its series, and no variant."""
        return not self.variant and _SERIES.fullmatch(self.name) is not None

    @property
    def patches_digest(self) -> str:
        """sha256 over the patches in order; "" without patches."""
        identities = [patch.identity for patch in self.patches]
        return hashlib.sha256(b"\0".join(identities)).hexdigest() if identities else ""

    def abi_for(self, release: str) -> str:
        """The ABI to judge a build by, with the switches of `differs` after commas.

        It is `abi`, or the upstream part of the release (such as "6.12.117").
        """
        abi = self.abi
        if abi == ABI_OF_RELEASE:
            match = _RELEASE.match(release)
            abi = match[0] if match else release
        return ",".join((abi, *self.differs))

    def digest(self) -> str:
        """sha256 over everything in this entry that decides what is built."""
        decisive = [
            self.source.kind,
            self.source.package,
            self.revision,
            self.wanted,
            self.patches_digest,
        ]
        if self.make:  # left out if empty: digests in existing stores stay valid
            decisive.append(self.make)
        return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()
