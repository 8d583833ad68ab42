"""Editing files of expectations so that everything else in them stays as a person wrote it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

import tomlkit
from tomlkit.items import AoT

from conformance.expectations.errors import ExpectationError
from conformance.expectations.proposal import Addition, Proposal

_TABLE = "expectation"
_HEAD = re.compile(rf"\s*\[\[\s*{_TABLE}\s*\]\]")


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
    """The lines of a unified diff, to be applied in ``root`` with -p1."""
    for file, text in after.items():
        name = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
        old, new = (each.splitlines(keepends=True) for each in (before.get(file, ""), text))
        origin = f"a/{name}" if file in before else "/dev/null"
        for line in unified_diff(old, new, origin, f"b/{name}"):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _mended(proposal: Proposal, file: Path, text: str) -> str:
    narrowed = {entry.number: when for entry, when in proposal.narrowed if entry.file == file}
    gone = {entry.number for entry in proposal.removed if entry.file == file}
    try:
        document = tomlkit.parse(text)
        tables = document[_TABLE]
        assert isinstance(tables, AoT)
        for number, when in narrowed.items():
            tables[number - 1]["when"] = when
        wanted = [each for number, each in enumerate(tables.unwrap(), 1) if number not in gone]
        mended = _without(tomlkit.dumps(document), gone)
        if tomllib.loads(mended).get(_TABLE, []) != wanted:
            raise ValueError("its tables do not begin where they seem to")
    except (ValueError, IndexError, KeyError) as error:
        what = f"cannot be edited: {error}"
        raise ExpectationError(file, "file", what, "edit it by hand") from error
    return mended


def _without(text: str, gone: Collection[int]) -> str:
    """A text without some of its tables, each with the comment right above it.

    A comment belongs to the table below it, for a parser to the one above.
    """
    lines = text.splitlines(keepends=True)
    heads = [number for number, line in enumerate(lines) if _HEAD.match(line)]
    starts = [_beginning(lines, head) for head in heads] + [len(lines)]
    left_out = {line for number in gone for line in range(starts[number - 1], starts[number])}
    return "".join(line for number, line in enumerate(lines) if number not in left_out)


def _beginning(lines: Sequence[str], head: int) -> int:
    """Where the comment begins that stands right above a table."""
    while head > 0 and lines[head - 1].lstrip().startswith("#"):
        head -= 1
    return head


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
