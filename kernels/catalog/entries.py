"""The catalog: one TOML per kernel, checked on load, found by name.

The data is in `catalog/`; each error names the file, the key and what to write instead.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from host.packages import tools as known_tools
from host.text import closest
from host.toml_table import Table, read
from kernels import kconfig
from kernels.catalog.patch import Patch, digest_of_all
from kernels.errors import BadCatalogEntry, UnknownKernel

CATALOG = Path(__file__).parent
VARIANTS = Path(__file__).parents[1] / "variants"

DEBIAN_SOURCE = "debian-source"
TARBALL = "tarball"
# A tree of the user's; no catalog file has one.
TREE = "tree"
# `series = "newest"`: any tarball, the newest of all.
NEWEST = "newest"
# `abi = "release"`: the ABI to judge by is that of the release that was built.
ABI_OF_RELEASE = "release"

# Names of ABIs that no release has as they are (`conformance.abi.profile.NAMED`).
ABIS = ("byte-status", "bit-status", "merge-window", "first-commit", "rfc-v1")
_ABI = re.compile(rf"{ABI_OF_RELEASE}|\d+\.\d+(?:\.\d+)?|{'|'.join(ABIS)}")
_SWITCH = re.compile(r"\w+=(?:yes|no)")

# A kernel's name is part of paths, case reports and file names.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
# Of a file in a directory of ours.
_STEM = re.compile(r"\w[\w.-]{0,99}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~-]*")
# VERSION.PATCHLEVEL[.SUBLEVEL][-rcN] of `uname -r`, without what localversion adds.
_RELEASE = re.compile(r"\d+\.\d+(?:\.\d+)?(?:-rc\d+)?")
_NO_NUMBER = 1 << 30
_SERIES = re.compile(rf"\d+\.\d+|{NEWEST}")
_SERIES_OF = re.compile(r"\d+\.\d+(?!\d)")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the source comes from: a distribution's package, an upstream tarball, a user's tree.

    `suite` is the distribution's suite that has the package where the host's own may not,
    `series` the releases that a tarball may be of, `tree` the directory of a user's tree and
    `ref` the commit of its repository, None for the tree as it is.
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


@dataclass(frozen=True, slots=True)
class Needs:
    """What the host has to have: tools (keys of `tools.TOOLS`) and space in MiB.

    `objects` is about how many objects a build from scratch makes; only progress uses it.
    """

    tools: tuple[str, ...]
    tree_mib: int
    objects_mib: int
    objects: int | None


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """One kernel that can be built.

    `wanted` are the merged configuration lines, `patches` are in order of applying, `make` words
    for make's command line, `keep` files among the objects that go with the image, `revision` the
    one asked for by `NAME@REVISION`, if any (of a user's tree, the id of its content), `label` what
    was added by the user ("+fix~debug").  `of` names the kernel that this one is our variant of;
    `differs` is what an `abi` of another release has to be told.
    """

    name: str
    abi: str
    source: Source
    fragments: tuple[str, ...]
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
        """The name under which results are kept: path-safe and unique."""
        asked = self.revision if self.source.kind != TREE else None
        return (f"{self.name}@{asked}" if asked else self.name) + self.label

    @property
    def objects_name(self) -> str:
        """The name under which objects are kept: all contents of a tree share them."""
        return (TREE if self.source.kind == TREE else self.name) + self.label

    @property
    def variant(self) -> bool:
        """Whether nobody but us has this kernel."""
        return self.of is not None

    @property
    def plain(self) -> bool:
        """Whether it is just a release: no variant, and named by its series."""
        return not self.variant and _SERIES_OF.fullmatch(self.name) is not None

    @property
    def patches_digest(self) -> str:
        """sha256 over the patches' texts in order; "" without patches."""
        return digest_of_all(self.patches)

    def abi_for(self, release: str) -> str:
        """The ABI to judge a build by: `abi`, or the release (as "6.12.117") if it says so.

        What `differs` from it follows after commas.
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
        if self.make:  # names remembered without are still right
            decisive.append(self.make)
        return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Catalog:
    """All kernels of a catalog directory, by name."""

    entries: Mapping[str, KernelEntry]

    def find(self, name: str) -> KernelEntry:
        """The entry of `NAME` or `NAME@REVISION`.  Raises UnknownKernel with the closest name."""
        stem, at, revision = name.partition("@")
        if stem not in self.entries or (at and not _REVISION.fullmatch(revision)):
            raise UnknownKernel(name, tuple(self.entries), closest(stem, self.entries))
        entry = self.entries[stem]
        series = _SERIES_OF.match(revision)
        if entry.source.series == NEWEST and series:
            # Any release can be asked for, and is made of what its own series needs.
            entry = replace(
                self.like(revision) or entry,
                name=entry.name,
                source=replace(entry.source, series=series[0]),
                default=entry.default,
            )
        return replace(entry, revision=revision or None)

    def like(self, number: str) -> KernelEntry | None:
        """What tells how to make a release such as "6.13-rc2": the entry of its series.

        Without one, that of the series before it; of what is newer than all, that of the newest
        tarball.  None for what is older than all.
        """
        series = _series(number)
        numbered = {_series(entry.name): entry for entry in self.entries.values() if entry.plain}
        if series > max(numbered):
            return next(one for one in self.entries.values() if one.source.series == NEWEST)
        return next((numbered[each] for each in sorted(numbered)[::-1] if each <= series), None)

    @property
    def first(self) -> str:
        """The oldest series that there is an entry of."""
        return min((one.name for one in self.entries.values() if one.plain), key=_series)

    def default(self) -> tuple[KernelEntry, ...]:
        """The kernels that "all kernels" means."""
        return tuple(entry for entry in self.entries.values() if entry.default)


def load_catalog(directory: Path = CATALOG) -> Catalog:
    """Read every TOML of a directory.  Raises BadCatalogEntry for the first that is wrong."""
    files = sorted(directory.glob("*.toml"), key=lambda file: _by_number(file.stem))
    if not files:
        raise BadCatalogEntry(directory, "", "holds no *.toml", "put one file per kernel there")
    tables = [read(file, BadCatalogEntry) for file in files]
    # Variants take from other entries what they do not say themselves.
    entries: dict[str, KernelEntry] = {}
    for table in sorted(tables, key=lambda table: "of" in table.data):
        entry = _variant(table, entries) if "of" in table.data else _entry(table)
        table.finish()
        entries[entry.name] = entry
    return Catalog({file.stem: entries[file.stem] for file in files})


def _series(number: str) -> tuple[int, int]:
    version, level = re.findall(r"\d+", number)[:2]
    return int(version), int(level)


def _by_number(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts 6.9 before 6.12, and what has no number last."""
    parts = re.findall(r"(\d+)|(\D+)", name)
    return tuple((int(number), "") if number else (_NO_NUMBER, text) for number, text in parts)


def _entry(table: Table) -> KernelEntry:
    """An entry that stands for itself."""
    fragments = table.texts("fragments")
    return KernelEntry(
        name=_name(table),
        abi=_abi(table),
        source=_source(table.table("source")),
        fragments=fragments,
        wanted=_wanted(table, fragments),
        patches=_patches(table),
        needs=_needs(table.table("needs")),
        default=table.flag("default", default=True),
        differs=_differs(table),
    )


def _variant(table: Table, bases: Mapping[str, KernelEntry]) -> KernelEntry:
    """An entry that is another one but for its patches and the ABI to judge it by."""
    of = table.text("of")
    base = bases.get(of)
    if base is None or base.variant:
        known = ", ".join(name for name, entry in bases.items() if not entry.variant)
        raise table.bad("of", f"{of!r} is no kernel to be changed", f"choose from: {known}")
    return replace(
        base,
        name=_name(table),
        abi=_abi(table, default=base.abi),
        patches=_patches(table),
        default=table.flag("default", default=True),
        of=of,
        differs=_differs(table),
    )


def _name(table: Table) -> str:
    name = table.text("name")
    if not _NAME.fullmatch(name):
        raise table.bad("name", f"{name!r} is not path-safe", "use only a-z 0-9 . _ -")
    if name != table.file.stem:
        raise table.bad(
            "name", f"{name!r} is not the file's name", f'write name = "{table.file.stem}"'
        )
    return name


def _abi(table: Table, default: str | None = None) -> str:
    abi = table.text("abi", default=default)
    if not _ABI.fullmatch(abi):
        known = (ABI_OF_RELEASE, *ABIS)
        close = closest(abi, known)
        hint = (
            f"did you mean {close}?" if close else f"a release such as 6.8, or {', '.join(known)}"
        )
        raise table.bad("abi", f"unknown ABI {abi!r}", hint)
    return abi


def _differs(table: Table) -> tuple[str, ...]:
    differs = table.texts("differs", default=())
    for text in differs:
        if not _SWITCH.fullmatch(text):
            raise table.bad("differs", f"{text!r} sets no switch", 'write differs = ["SWITCH=no"]')
    return differs


def _source(table: Table) -> Source:
    kind = table.text("kind")
    if kind == DEBIAN_SOURCE:
        source = _debian_source(table)
    elif kind == TARBALL:
        source = Source(kind, "linux", series=table.text("series"))
        if not _SERIES.fullmatch(table.text("series")):
            hint = f'write series = "6.1" or "{NEWEST}"'
            raise table.bad("series", f"{source.series!r} is no series", hint)
    else:
        hint = f'write kind = "{DEBIAN_SOURCE}" or "{TARBALL}"'
        raise table.bad("kind", f"unknown kind {kind!r}", hint)
    table.finish()
    return source


def _debian_source(table: Table) -> Source:
    package = table.text("package")
    suite = table.text("suite") if "suite" in table.data else None
    for key, value in (("package", package), ("suite", suite)):
        if value is not None and not _NAME.fullmatch(value):
            raise table.bad(key, f"{value!r} is no {key} name", "use only a-z 0-9 . _ -")
    return Source(DEBIAN_SOURCE, package, suite=suite)


def _wanted(table: Table, fragments: tuple[str, ...]) -> tuple[str, ...]:
    texts = []
    for name in fragments:
        file = kconfig.fragment_path(name)
        if not _STEM.fullmatch(name) or not file.is_file():
            known = ", ".join(sorted(path.stem for path in kconfig.FRAGMENTS.glob("*.config")))
            raise table.bad("fragments", f"no fragment {name!r}", f"choose from: {known}")
        text = kconfig.fragment(name)
        if wrong := kconfig.malformed(text):
            raise BadCatalogEntry(file, wrong[0], "not a configuration line", "write CONFIG_X=y")
        texts.append(text)
    return kconfig.merge(texts)


def _patches(table: Table) -> tuple[Patch, ...]:
    found = []
    for name in table.texts("patches", default=()):
        file = VARIANTS / f"{name}.patch"
        if not _STEM.fullmatch(name) or not file.is_file():
            raise table.bad("patches", f"no patch {name!r}", f"put it at {file}")
        found.append(Patch(name, file.read_text(encoding="utf-8")))
    return tuple(found)


def _needs(table: Table) -> Needs:
    tools = table.texts("tools")
    for name in tools:
        if name not in known_tools():
            raise table.bad("tools", f"unknown tool {name!r}", "add it to host/packages.txt")
    needs = Needs(
        tools=tools,
        tree_mib=table.number("tree_mib"),
        objects_mib=table.number("objects_mib"),
        objects=table.number("objects") if "objects" in table.data else None,
    )
    table.finish()
    return needs
