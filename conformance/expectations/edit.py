"""Editing files of expectations so that everything else in them stays as a person wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from conformance.expectations.errors import ExpectationError
from conformance.expectations.proposal import Addition, Proposal

_TABLE = "expectation"


def edited(proposal: Proposal, files: Mapping[Path, str], additions: Path) -> dict[Path, str]:
    """The texts of the files that change; tables that are new go to the end of ``additions``.

    Raises ExpectationError for a file that is not what was loaded.
    """
    touched = {entry.file for entry in proposal.removed}
    touched |= {entry.file for entry, _ in proposal.narrowed}
    found = {file: _mended(proposal, file, files[file]) for file in sorted(touched)}
    if proposal.added:
        text = found.get(additions, files.get(additions, ""))
        tables = [_text(each) for each in proposal.added]
        found[additions] = "\n".join([*([text] if text else []), *tables])
    return found


def differences(before: Mapping[Path, str], after: Mapping[Path, str], root: Path) -> Iterator[str]:
    """A unified diff, to be applied in ``root`` with -p1."""
    for file, text in after.items():
        name = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
        yield from unified_diff(
            before.get(file, "").splitlines(keepends=True),
            text.splitlines(keepends=True),
            f"a/{name}" if file in before else "/dev/null",
            f"b/{name}",
        )


def _mended(proposal: Proposal, file: Path, text: str) -> str:
    try:
        document = tomlkit.parse(text)
        tables = document[_TABLE]
        assert isinstance(tables, AoT)
        for entry, when in proposal.narrowed:
            if entry.file == file:
                tables[entry.number - 1]["when"] = when
        gone = [entry.number for entry in proposal.removed if entry.file == file]
        for number in sorted(gone, reverse=True):
            del tables[number - 1]
        return tomlkit.dumps(document)
    except (TOMLKitError, IndexError, KeyError) as error:
        mend = "edit it by hand"
        raise ExpectationError(file, "file", f"cannot be edited: {error}", mend) from error


def _text(addition: Addition) -> str:
    """A new table as it stands in a file."""
    table = tomlkit.table()
    table["case"] = addition.case
    table["step"] = addition.steps[0] if len(addition.steps) == 1 else list(addition.steps)
    table["field"] = addition.field
    literal = "\\" in addition.pattern and "'" not in addition.pattern
    literal = literal and addition.pattern.isprintable()
    table["pattern"] = tomlkit.string(addition.pattern, literal=literal)
    table["when"] = addition.when
    table["reason"] = addition.reason
    tables = tomlkit.aot()
    tables.append(table)
    document = tomlkit.document()
    document[_TABLE] = tables
    return tomlkit.dumps(document)
