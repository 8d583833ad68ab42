"""The catalog: one TOML per kernel, checked on load, found by name.

The data is in `catalog/`; each error names the file, the key and what to write instead.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernels import config
from kernels.errors import BadCatalogEntry, UnknownKernel
from kernels.tools import TOOLS

CATALOG = Path(__file__).parent / "catalog"
PATCHES = Path(__file__).parent / "patches"

DEBIAN_SOURCE = "debian-source"
# `abi = "release"`: the ABI to judge by is that of the release that was built.
ABI_OF_RELEASE = "release"

# A kernel's name is part of paths, case reports and file names.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~-]*")
# VERSION.PATCHLEVEL[.SUBLEVEL][-rcN] of `uname -r`, without what localversion adds.
_RELEASE = re.compile(r"\d+\.\d+(?:\.\d+)?(?:-rc\d+)?")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the source comes from: a distribution's source package."""

    kind: str
    package: str


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

    `wanted` are the merged configuration lines, `patches` (name, text) in order of applying,
    `revision` the one asked for by `NAME@REVISION`, if any.
    """

    name: str
    abi: str
    source: Source
    fragments: tuple[str, ...]
    wanted: tuple[str, ...]
    patches: tuple[tuple[str, str], ...]
    needs: Needs
    default: bool
    revision: str | None = None

    @property
    def kernel_id(self) -> str:
        """The name under which results are kept: path-safe and unique."""
        return f"{self.name}@{self.revision}" if self.revision else self.name

    @property
    def patches_digest(self) -> str:
        """sha256 over the patches' texts in order; "" without patches."""
        if not self.patches:
            return ""
        return hashlib.sha256("\0".join(text for _, text in self.patches).encode()).hexdigest()

    def abi_for(self, release: str) -> str:
        """The ABI to judge a build by: `abi`, or the release (as "6.12.117") if it says so."""
        if self.abi != ABI_OF_RELEASE:
            return self.abi
        match = _RELEASE.match(release)
        return match[0] if match else release

    def digest(self) -> str:
        """sha256 over everything in this entry that decides what is built."""
        decisive = [
            self.source.kind,
            self.source.package,
            self.revision,
            self.wanted,
            self.patches_digest,
        ]
        return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Catalog:
    """All kernels of a catalog directory, by name."""

    entries: Mapping[str, KernelEntry]

    def find(self, name: str) -> KernelEntry:
        """The entry of `NAME` or `NAME@REVISION`.  Raises UnknownKernel with the closest name."""
        stem, at, revision = name.partition("@")
        if stem not in self.entries or (at and not _REVISION.fullmatch(revision)):
            raise UnknownKernel(name, tuple(self.entries), _closest(stem, self.entries))
        return replace(self.entries[stem], revision=revision or None)

    def default(self) -> tuple[KernelEntry, ...]:
        """The kernels that "all kernels" means."""
        return tuple(entry for entry in self.entries.values() if entry.default)


def load_catalog(directory: Path = CATALOG) -> Catalog:
    """Read every TOML of a directory.  Raises BadCatalogEntry for the first that is wrong."""
    files = sorted(directory.glob("*.toml"), key=lambda file: file.stem)
    if not files:
        raise BadCatalogEntry(directory, "", "holds no *.toml", "put one file per kernel there")
    loaded = (load_entry(file) for file in files)
    return Catalog({entry.name: entry for entry in loaded})


def load_entry(file: Path) -> KernelEntry:
    """Read and check one catalog file.  Raises BadCatalogEntry."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadCatalogEntry(file, "", f"not valid TOML: {error}", "correct the syntax") from error
    except OSError as error:
        raise BadCatalogEntry(file, "", f"not readable: {error.strerror}", "remove it") from error
    table = _Table(file, "", data)
    entry = KernelEntry(
        name=_name(table),
        abi=table.text("abi", default=ABI_OF_RELEASE),
        source=_source(table.table("source")),
        fragments=(fragments := table.texts("fragments")),
        wanted=_wanted(table, fragments),
        patches=_patches(table),
        needs=_needs(table.table("needs")),
        default=table.flag("default", default=True),
    )
    table.finish()
    return entry


def _closest(word: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # 10 ms that a correct catalog does not need

    return next(iter(get_close_matches(word, list(known), n=1)), None)


def _name(table: _Table) -> str:
    name = table.text("name")
    if not _NAME.fullmatch(name):
        raise table.bad("name", f"{name!r} is not path-safe", "use only a-z 0-9 . _ -")
    if name != table.file.stem:
        raise table.bad(
            "name", f"{name!r} is not the file's name", f'write name = "{table.file.stem}"'
        )
    return name


def _source(table: _Table) -> Source:
    kind = table.text("kind")
    if kind != DEBIAN_SOURCE:
        raise table.bad("kind", f"unknown kind {kind!r}", f'write kind = "{DEBIAN_SOURCE}"')
    package = table.text("package")
    if not _NAME.fullmatch(package):
        raise table.bad("package", f"{package!r} is no package name", "use only a-z 0-9 . _ -")
    table.finish()
    return Source(kind, package)


def _wanted(table: _Table, fragments: tuple[str, ...]) -> tuple[str, ...]:
    texts = []
    for name in fragments:
        file = config.fragment_path(name)
        if not file.is_file():
            known = ", ".join(sorted(path.stem for path in config.FRAGMENTS.glob("*.config")))
            raise table.bad("fragments", f"no fragment {name!r}", f"choose from: {known}")
        text = config.fragment(name)
        if wrong := config.malformed(text):
            raise BadCatalogEntry(file, wrong[0], "not a configuration line", "write CONFIG_X=y")
        texts.append(text)
    return config.merge(texts)


def _patches(table: _Table) -> tuple[tuple[str, str], ...]:
    found = []
    for name in table.texts("patches", default=()):
        file = PATCHES / f"{name}.patch"
        if not file.is_file():
            raise table.bad("patches", f"no patch {name!r}", f"put it at {file}")
        found.append((name, file.read_text(encoding="utf-8")))
    return tuple(found)


def _needs(table: _Table) -> Needs:
    tools = table.texts("tools")
    for name in tools:
        if name not in TOOLS:
            raise table.bad("tools", f"unknown tool {name!r}", "add it to kernels/tools.py")
    needs = Needs(
        tools=tools,
        tree_mib=table.number("tree_mib"),
        objects_mib=table.number("objects_mib"),
        objects=table.number("objects") if "objects" in table.data else None,
    )
    table.finish()
    return needs


class _Table:
    """A TOML table being read: each getter checks one key, `finish` refuses keys unread."""

    def __init__(self, file: Path, prefix: str, data: Mapping[str, object]) -> None:
        self.file = file
        self.data = data
        self._prefix = prefix
        self._read: set[str] = set()

    def bad(self, key: str, what: str, mend: str) -> BadCatalogEntry:
        """The error about one key of this table."""
        return BadCatalogEntry(self.file, self._prefix + key, what, mend)

    def text(self, key: str, *, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str) or not value:
            raise self.bad(key, f"must be a text, not {value!r}", f'write {key} = "…"')
        return value

    def texts(self, key: str, *, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        value = self._get(key, default)
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise self.bad(key, f"must be a list of texts, not {value!r}", f'write {key} = ["…"]')
        return tuple(value)

    def number(self, key: str) -> int:
        value = self._get(key, None)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise self.bad(key, f"must be a positive number, not {value!r}", f"write {key} = 100")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self.bad(key, f"must be true or false, not {value!r}", f"write {key} = true")
        return value

    def table(self, key: str) -> _Table:
        value = self._get(key, None)
        if not isinstance(value, dict):
            raise self.bad(key, f"must be a table, not {value!r}", f"write [{key}]")
        return _Table(self.file, f"{self._prefix}{key}.", value)

    def finish(self) -> None:
        """Refuse what nobody asked for: a misspelt key must not be ignored."""
        for key in self.data:
            if key not in self._read:
                close = _closest(key, self._read)
                raise self.bad(
                    key, "unknown key", f"did you mean {close}?" if close else "remove it"
                )

    def _get(self, key: str, default: object) -> object:
        self._read.add(key)
        value = self.data.get(key, default)
        if value is None:
            raise self.bad(key, "missing", f"add {key} (see kernels/catalog/6.12.toml)")
        return value
