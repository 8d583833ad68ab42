"""The corpus of definitions: registration strings and their results.

The table is ``fixtures/definitions.toml``: a string can be added without changing a case.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFINITIONS = Path(__file__).resolve().parents[3] / "fixtures" / "definitions.toml"
PLACEHOLDER = "NAME"
_SECTIONS = ("accepted", "refused")


class CorpusError(Exception):
    """An invalid corpus; the message names file and key, and says what to write."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A registration string and its expected line in dynamic_events, or its errno."""

    template: str
    literal: str

    def text(self, name: str) -> str:
        """The registration string of the event ``name``."""
        return self.template.replace(PLACEHOLDER, name)

    def line(self, name: str) -> str:
        """The expected line of dynamic_events, with its newline."""
        return self.literal.replace(PLACEHOLDER, name) + "\n"


Group = Mapping[str, Definition]


def load_definitions(section: str, path: Path = DEFINITIONS) -> Mapping[str, Group]:
    """The groups of a section, by name.

    Raises CorpusError for an invalid file, section or entry.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise CorpusError(f"{path}: {error}") from error
    unknown = sorted(set(tables) - set(_SECTIONS))
    if unknown or section not in tables:
        found = ", ".join(unknown or [section])
        raise CorpusError(f"{path}: {found}: sections are {' and '.join(_SECTIONS)}")
    return {name: _group(path, f"{section}.{name}", rows) for name, rows in tables[section].items()}


def _group(path: Path, name: str, rows: object) -> Group:
    if not isinstance(rows, dict):
        raise CorpusError(f"{path}: {name}: write a table of definitions, [{name}]")
    return {key: _definition(path, f"{name}.{key}", row) for key, row in rows.items()}


def _definition(path: Path, key: str, row: object) -> Definition:
    match row:
        case [str(template), str(literal)] if template.startswith(PLACEHOLDER):
            return Definition(template, literal)
    hint = f'write ["{PLACEHOLDER} …", "…"], two texts of which the first starts so'
    raise CorpusError(f"{path}: {key}: {hint}")
