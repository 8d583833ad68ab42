"""Flavours: variations of any kernel that check or count more.

A flavour is `config/flavours/NAME.config`, a fragment, and NAME.toml with what a fragment cannot
say.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from host.text import closest
from host.toml_table import read
from kernels import kconfig
from kernels.errors import BadCatalogEntry, UserMistake

FLAVOURS = kconfig.FRAGMENTS / "flavours"


class Flavour(Struct, frozen=True):
    """One flavour.

    `fragment` is its configuration text, `make` are words for make's command line, `keep` names
    files among the objects that are stored with the image; `memory_mib` is what its guests need,
    `slowness` the factor for their time limits, `objects_mib` the disk space of a build.
    """

    name: str
    fragment: str
    make: tuple[str, ...]
    keep: tuple[str, ...]
    memory_mib: int
    slowness: int
    objects_mib: int


def names(directory: Path = FLAVOURS) -> tuple[str, ...]:
    """The names of all flavours."""
    return tuple(sorted(path.stem for path in directory.glob("*.config")))


def flavour(name: str, directory: Path = FLAVOURS) -> Flavour:
    """The flavour of that name.  Raises UserMistake, BadCatalogEntry."""
    known = names(directory)
    if name not in known:
        close = closest(name, known)
        hint = f"did you mean {close}?" if close else f"choose from: {', '.join(known)}"
        raise UserMistake(f"unknown flavour {name!r}", hint)
    file = directory / f"{name}.config"
    fragment = file.read_text(encoding="utf-8")
    if wrong := kconfig.malformed(fragment):
        raise BadCatalogEntry(file, wrong[0], "not a configuration line", "write CONFIG_X=y")
    table = read(directory / f"{name}.toml", BadCatalogEntry)
    found = Flavour(
        name=name,
        fragment=fragment,
        make=table.texts("make", default=()),
        keep=table.texts("keep", default=()),
        memory_mib=table.number("memory_mib"),
        slowness=table.number("slowness"),
        objects_mib=table.number("objects_mib"),
    )
    for word in found.make:
        if "=" not in word:
            raise table.bad("make", f"{word!r} would be a target", 'write make = ["NAME=value"]')
    table.finish()
    return found
