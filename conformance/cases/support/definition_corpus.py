"""The corpus of definitions: registration strings and their results.

The table is ``fixtures/definitions.toml``: a string can be added without changing a case.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from host.errors import FileError
from host.toml_table import Table, read

DEFINITIONS = Path(__file__).resolve().parents[3] / "fixtures" / "definitions.toml"
PLACEHOLDER = "NAME"
_SECTIONS = ("accepted", "refused")


class CorpusError(FileError):
    """A corpus that cannot be used."""


class Definition(Struct, frozen=True):
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
    document = read(path, CorpusError)
    sections = {name: document.table(name) for name in _SECTIONS if name in document.data}
    document.finish()
    if section not in sections:
        raise document.bad(section, "is missing", f"sections are {' and '.join(_SECTIONS)}")
    groups = sections[section]
    return {name: _group(groups.table(name)) for name in groups.data}


def _group(table: Table) -> Group:
    return {key: _definition(table, key) for key in table.data}


def _definition(table: Table, key: str) -> Definition:
    match value := table.value(key):
        case [str(template), str(literal)] if template.startswith(PLACEHOLDER):
            return Definition(template, literal)
    hint = f'write ["{PLACEHOLDER} …", "…"], two texts of which the first starts so'
    raise table.bad(key, f"is {value!r}", hint)
