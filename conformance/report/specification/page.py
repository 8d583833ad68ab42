"""The cases as the specification of user_events: one page of their sentences, to be browsed.

``python -m conformance.report.specification.page FILE`` writes it; the page is one file and needs
no network.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from conformance.abi.profile import NAMED, Profile, profile_for
from conformance.abi.switches import BY_NAME, DERIVED
from conformance.cases.case import VARIANTS_MARK, Case, declared
from conformance.cases.discovery import case_modules
from conformance.cases.surfaces import place
from conformance.report.html.pages import render_page
from conformance.report.specification.abi_tables import releases


@dataclass(frozen=True, slots=True)
class Sentence:
    """What one case proves: a sentence, and what goes on after it; ids of its variants."""

    case: Case
    text: str
    more: str
    variants: tuple[str, ...]

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """What a kernel must have and must not, and what each of that says."""
        says = {**{name: each.says for name, each in BY_NAME.items()}, **DERIVED}
        on = [(name, says[name]) for name in self.case.needs]
        return on + [(f"not {name}", says[name]) for name in self.case.without]


@dataclass(frozen=True, slots=True)
class Chapter:
    """The sentences of one module of cases."""

    title: str
    name: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Surface:
    """The chapters whose cases share the first part of their ids."""

    name: str
    chapters: tuple[Chapter, ...]

    @property
    def sentences(self) -> int:
        """How many there are."""
        return sum(len(chapter.sentences) for chapter in self.chapters)


def surfaces(modules: Sequence[ModuleType]) -> list[Surface]:
    """All sentences by surface; chapters in the order of files."""
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
            yield Sentence(case, *_docstring(function), tuple(_variants(function)))


def _docstring(documented: object) -> tuple[str, str]:
    """The sentence, on one line, and the paragraphs behind it."""
    first, _, more = (inspect.getdoc(documented) or "").partition("\n\n")
    return " ".join(first.split()), more.strip()


def _variants(function: Callable[..., None]) -> Iterator[str]:
    """The last parts of the ids of a case's variants; none where it has only itself."""
    marks = [
        each for each in getattr(function, "pytestmark", ()) if each.name == VARIANTS_MARK.name
    ]
    tables = [[str(row.id) for row in mark.args[1]] for mark in marks]
    return ("-".join(row) for row in itertools.product(*tables)) if tables else iter(())


def profiles() -> list[Profile]:
    """Every contract that a reader may want to see alone: the unreleased ones, then releases."""
    return [*map(profile_for, NAMED), *releases()]


def render(found: Sequence[Surface]) -> str:
    """The page."""
    known = profiles()

    def kernels(case: Case) -> str:
        """The numbers of the contracts that a case holds for."""
        return " ".join(str(place) for place, each in enumerate(known) if case.applies(each))

    sentences = [each for one in found for chapter in one.chapters for each in chapter.sentences]
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


def main() -> None:
    """Write the page where the first argument says."""
    parser = argparse.ArgumentParser(prog="python -m conformance.report.specification.page")
    parser.add_argument("file", type=Path)
    file: Path = parser.parse_args().file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(render(surfaces(case_modules())), encoding="utf-8")
    sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
