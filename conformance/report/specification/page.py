"""The cases as the specification of user_events: an HTML page of their sentences.

``python -m conformance.report.specification.page FILE`` writes it as one file that needs no
network.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from msgspec import Struct

from conformance.abi.profile import NAMED, Profile, profile_for
from conformance.abi.switches import BY_NAME, DERIVED
from conformance.cases.case import Case, declared
from conformance.cases.discovery import case_modules
from conformance.cases.surfaces import place
from conformance.cases.variants import variants_of
from conformance.report.html.pages import render_page
from conformance.report.specification.abi_tables import releases


class Sentence(Struct, frozen=True):
    """What one case proves: its sentence, further paragraphs, and the ids of its variants."""

    case: Case
    text: str
    more: str
    variants: tuple[str, ...]

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """The switches that a kernel must have or lack, and known bugs, with descriptions."""
        says = {**{name: each.says for name, each in BY_NAME.items()}, **DERIVED}
        on = [(name, says[name]) for name in self.case.needs]
        off = [(f"not {name}", says[name]) for name in self.case.without]
        return on + off + [(f"bug {name}", says[name]) for name in self.case.bugs]


class Chapter(Struct, frozen=True):
    """The sentences of one case file."""

    title: str
    name: str
    sentences: tuple[Sentence, ...]


class Surface(Struct, frozen=True):
    """The chapters whose case ids begin with the same word."""

    name: str
    chapters: tuple[Chapter, ...]

    @property
    def sentences(self) -> list[Sentence]:
        """The sentences of its chapters."""
        return [each for chapter in self.chapters for each in chapter.sentences]


def surfaces(modules: Sequence[ModuleType]) -> list[Surface]:
    """All sentences by surface, chapters in the order of files."""
    found: dict[str, list[Chapter]] = {}
    for module in modules:
        sentences = sorted(_sentences(module), key=lambda each: each.case.surface)
        for surface, group in itertools.groupby(sentences, key=lambda each: each.case.surface):
            name = f"{surface}-{module.__name__.rpartition('test_')[2]}"
            chapter = Chapter(_docstring(module)[0], name, tuple(group))
            found.setdefault(surface, []).append(chapter)
    return [Surface(name, tuple(found[name])) for name in sorted(found, key=place)]


def _sentences(module: ModuleType) -> Iterator[Sentence]:
    for function in vars(module).values():
        case = declared(function)
        if case is not None and function.__module__ == module.__name__:
            ids = (each.id.removeprefix(case.id)[1:] for each in variants_of(function))
            yield Sentence(case, *_docstring(function), tuple(filter(None, ids)))


def _docstring(documented: object) -> tuple[str, str]:
    """The first paragraph on one line, and the other paragraphs."""
    first, _, more = (inspect.getdoc(documented) or "").partition("\n\n")
    return " ".join(first.split()), more.strip()


def profiles() -> list[Profile]:
    """The ABIs of the filter: unreleased ones, then releases."""
    return [*map(profile_for, NAMED), *releases()]


def render(found: Sequence[Surface]) -> str:
    """Render the page."""
    known = profiles()

    def kernels(case: Case) -> str:
        """The numbers of the ABIs that a case applies to."""
        return " ".join(str(place) for place, each in enumerate(known) if case.applies(each))

    sentences = [each for one in found for each in one.sentences]
    return render_page(
        "specification.html",
        styles=("specification.css",),
        scripts=("specification.js",),
        surfaces=found,
        profiles=[profile.name for profile in known],
        kernels=kernels,
        sentences=len(sentences),
        variants=sum(len(each.variants) or 1 for each in sentences),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m conformance.report.specification.page")
    parser.add_argument("file", type=Path)
    file: Path = parser.parse_args().file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(render(surfaces(case_modules())), encoding="utf-8")
    sys.stdout.write(f"{file}\n")
