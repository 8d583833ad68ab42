"""The modules of a given kernel image: files, dependencies, and load order."""

from __future__ import annotations

import gzip
import lzma
import re
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from kernels.build.ko_file import modinfo
from kernels.errors import UserMistake
from kernels.tools import child_process, toolchain

UNPACK_S = 60.0
_FILE = re.compile(r"(.+)\.ko(?:\.(gz|xz|zst))?")
_PLACES = ("lib/modules", "usr/lib/modules")


class NoModules(UserMistake):
    """A directory that does not hold the modules of an image."""

    def __init__(self, directory: Path, why: str) -> None:
        super().__init__(
            f"{directory}: {why}", "give the image's lib/modules/RELEASE, or a root that has it"
        )


class BundledModule(Struct, frozen=True):
    """A module, uncompressed."""

    name: str
    content: bytes

    @property
    def depends(self) -> tuple[str, ...]:
        """Names of the modules that must be loaded before this one."""
        names = modinfo(self.content, "depends").split(",")
        return tuple(_plain(name) for name in names if name)

    @property
    def release(self) -> str:
        """The kernel release that it was built for."""
        return modinfo(self.content, "vermagic").partition(" ")[0]


class ModulesDirectory:
    """The modules of one release, by name."""

    def __init__(self, given: Path, release: str) -> None:
        self._given = given
        self._release = release
        self._directory = _directory(given, release)
        self._files = dict(self._listing())
        if not self._files:
            raise NoModules(given, f"it has no modules of {release}")

    def in_load_order(self, names: Sequence[str]) -> tuple[BundledModule, ...]:
        """Some modules and their dependencies, in load order.

        A name without a file is taken for built in.  Raises NoModules for modules of another
        release.
        """
        found: dict[str, BundledModule] = {}
        for name in names:
            self._visit(name, found, ())
        return tuple(found.values())

    def _visit(self, name: str, found: dict[str, BundledModule], asked_by: tuple[str, ...]) -> None:
        if name in found or name not in self._files:
            return
        if name in asked_by:
            raise NoModules(self._given, f"its {name} depends on itself: {' -> '.join(asked_by)}")
        module = BundledModule(name, _content(self._files[name]))
        if module.release != self._release:
            why = f"its {name} is for {module.release}, the image is {self._release}"
            raise NoModules(self._given, why)
        for needed in module.depends:
            self._visit(needed, found, (*asked_by, name))
        found[name] = module

    def _listing(self) -> Iterator[tuple[str, Path]]:
        for file in sorted(self._directory.rglob("*.ko*")):
            if match := _FILE.fullmatch(file.name):
                yield _plain(match[1]), file


def _directory(given: Path, release: str) -> Path:
    for place in _PLACES:
        if (given / place / release).is_dir():
            return given / place / release
        if (given / place).is_dir():
            there = ", ".join(sorted(each.name for each in (given / place).iterdir())) or "nothing"
            raise NoModules(given, f"its {place} has {there}, the image is {release}")
    if not given.is_dir():
        raise NoModules(given, "no such directory")
    return given


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _content(file: Path) -> bytes:
    """The uncompressed content of a module's file.  Raises MissingTool, NoModules."""
    try:
        if file.suffix == ".zst":
            toolchain.require(["zstd"])
            done = subprocess.run(
                ["zstd", "-dcq", str(file)],
                capture_output=True,
                check=True,
                timeout=UNPACK_S,
                env=child_process.environment(),
            )
            return done.stdout
        packed = file.read_bytes()
        if file.suffix == ".xz":
            return lzma.decompress(packed)
        return gzip.decompress(packed) if file.suffix == ".gz" else packed
    except (OSError, EOFError, zlib.error, lzma.LZMAError, subprocess.SubprocessError) as error:
        raise NoModules(file, f"it cannot be read: {error}") from error
