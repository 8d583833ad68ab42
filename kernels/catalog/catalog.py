"""The catalog: one TOML file per kernel, checked when it is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from host.text import closest
from host.toml_table import Table, read
from kernels import kconfig
from kernels.catalog.entries import (
    ABI_OF_RELEASE,
    DEBIAN_SOURCE,
    NEWEST,
    TARBALL,
    KernelEntry,
    Needs,
    Source,
)
from kernels.catalog.patch import Patch
from kernels.errors import BadCatalogEntry, UnknownKernel

CATALOG = Path(__file__).parent
VARIANTS = Path(__file__).parents[1] / "variants"

# Named ABIs besides releases (`NAMED` of conformance.abi.profile).
ABIS = ("byte-status", "bit-status", "merge-window", "first-commit", "rfc-v1")
_ABI = re.compile(rf"{ABI_OF_RELEASE}|\d+\.\d+(?:\.\d+)?|{'|'.join(ABIS)}")
_SWITCH = re.compile(r"\w+=(?:yes|no)")
# A kernel's name is part of paths, case reports and file names.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_STEM = re.compile(r"\w[\w.-]{0,99}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~-]*")
_SERIES = re.compile(rf"\d+\.\d+|{NEWEST}")
_SERIES_OF = re.compile(r"\d+\.\d+(?!\d)")
_NO_NUMBER = 1 << 30


class Catalog(Struct, frozen=True):
    """All kernels of a catalog directory, by name; `broken` are the files that cannot be used."""

    entries: Mapping[str, KernelEntry]
    broken: Mapping[str, BadCatalogEntry] = field(default_factory=dict)

    def find(self, name: str) -> KernelEntry:
        """The entry of `NAME` or `NAME@REVISION`.

        Raises UnknownKernel with the closest name, and BadCatalogEntry if its own file is invalid.
        """
        stem, at, revision = name.partition("@")
        if stem in self.broken:
            raise self.broken[stem]
        if stem not in self.entries or (at and not _REVISION.fullmatch(revision)):
            raise UnknownKernel(name, tuple(self.entries), closest(stem, self.entries))
        entry = self.entries[stem]
        series = _SERIES_OF.match(revision)
        if entry.source.series == NEWEST and series:
            # Any release can be requested; its series decides how it is configured.
            entry = replace(
                self.like(revision) or entry,
                name=entry.name,
                source=replace(entry.source, series=series[0]),
                default=entry.default,
            )
        return replace(entry, revision=revision or None)

    def like(self, number: str) -> KernelEntry | None:
        """The entry that shows how to configure a release such as "6.13-rc2".

        It is the entry of its series, else of the series before it; for a release newer than all
        entries, that of the newest tarball; for one older than all, None.
        """
        series = _series(number)
        numbered = {_series(entry.name): entry for entry in self.entries.values() if entry.plain}
        if series > max(numbered):
            return next(one for one in self.entries.values() if one.source.series == NEWEST)
        return next((numbered[each] for each in sorted(numbered)[::-1] if each <= series), None)

    @property
    def first(self) -> str:
        """The oldest series that has an entry."""
        return min((one.name for one in self.entries.values() if one.plain), key=_series)

    def default(self) -> tuple[KernelEntry, ...]:
        """The kernels that "all kernels" means.

        Raises BadCatalogEntry for any invalid file, which may be one of them.
        """
        for error in self.broken.values():
            raise error
        return tuple(entry for entry in self.entries.values() if entry.default)


def load_catalog(directory: Path = CATALOG) -> Catalog:
    """Read every TOML file of a directory; an invalid one concerns its own kernel and variants.

    Raises BadCatalogEntry for a directory without any.
    """
    files = sorted(directory.glob("*.toml"), key=lambda file: _by_number(file.stem))
    if not files:
        raise BadCatalogEntry(directory, "", "holds no *.toml", "put one file per kernel there")
    tables: list[Table] = []
    entries: dict[str, KernelEntry] = {}
    broken: dict[str, BadCatalogEntry] = {}
    for file in files:
        try:
            tables.append(read(file, BadCatalogEntry))
        except BadCatalogEntry as error:
            broken[file.stem] = error
    # Variants come last: each inherits from its base.
    for table in sorted(tables, key=lambda table: table.has("of")):
        try:
            entry = _variant(table, entries, broken) if table.has("of") else _entry(table)
            table.finish()
            entries[entry.name] = entry
        except BadCatalogEntry as error:
            broken[table.file.stem] = error
    names = [file.stem for file in files if file.stem not in broken]
    return Catalog({name: entries[name] for name in names}, broken)


def _series(number: str) -> tuple[int, int]:
    version, level = re.findall(r"\d+", number)[:2]
    return int(version), int(level)


def _by_number(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts 6.9 before 6.12, and names without a number last."""
    parts = re.findall(r"(\d+)|(\D+)", name)
    return tuple((int(number), "") if number else (_NO_NUMBER, text) for number, text in parts)


def _entry(table: Table) -> KernelEntry:
    return KernelEntry(
        name=_name(table),
        abi=_abi(table),
        source=_source(table.table("source")),
        wanted=_wanted(table),
        patches=_patches(table),
        needs=_needs(table.table("needs")) if table.has("needs") else Needs(),
        default=table.flag("default", default=True),
        differs=_differs(table),
    )


def _variant(
    table: Table, bases: Mapping[str, KernelEntry], broken: Mapping[str, BadCatalogEntry]
) -> KernelEntry:
    """An entry that inherits all but its patches and its ABI."""
    of = table.text("of")
    if of in broken:
        raise broken[of]
    base = bases.get(of)
    if base is None or base.variant:
        known = ", ".join(name for name, entry in bases.items() if not entry.variant)
        raise table.bad("of", f"{of!r} is no base of variants", f"choose from: {known}")
    if table.has("fragments"):
        hint = "a variant has its base's configuration; write source instead of of"
        raise table.bad("fragments", "is not for a variant", hint)
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
        hint = f'write name = "{table.file.stem}"'
        raise table.bad("name", f"{name!r} is not the file's name", hint)
    return name


def _abi(table: Table, default: str | None = None) -> str:
    abi = table.text("abi", default=default)
    if "," in abi:
        raise table.bad("abi", f"{abi!r} has switches", "write switches in differs")
    if not _ABI.fullmatch(abi):
        known = (ABI_OF_RELEASE, *ABIS)
        close = closest(abi, known)
        choice = f"write a release such as 6.8, or {', '.join(known)}"
        raise table.bad(
            "abi", f"unknown ABI {abi!r}", f"did you mean {close}?" if close else choice
        )
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
    suite = table.text("suite") if table.has("suite") else None
    for key, value in (("package", package), ("suite", suite)):
        if value is not None and not _NAME.fullmatch(value):
            raise table.bad(key, f"{value!r} is no {key} name", "use only a-z 0-9 . _ -")
    return Source(DEBIAN_SOURCE, package, suite=suite)


def _wanted(table: Table) -> tuple[str, ...]:
    texts = []
    for name in table.texts("fragments"):
        file = kconfig.fragment_path(name)
        if not _STEM.fullmatch(name) or not file.is_file():
            known = ", ".join(sorted(path.stem for path in kconfig.FRAGMENTS.glob("*.config")))
            raise table.bad("fragments", f"no fragment {name!r}", f"choose from: {known}")
        text = file.read_text(encoding="utf-8")
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
    usual = Needs()
    needs = Needs(
        tree_mib=table.number("tree_mib", default=usual.tree_mib),
        objects_mib=table.number("objects_mib", default=usual.objects_mib),
        objects=table.number("objects", default=usual.objects),
    )
    table.finish()
    return needs
