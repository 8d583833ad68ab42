"""Read a TOML file key by key: check each value, refuse keys that are not known."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from host.errors import FileError
from host.text import closest


def read(file: Path, error: type[FileError]) -> Table:
    """The table that a whole file is.  Raises `error`, as all methods of the table do."""
    try:
        return Table(file, "", tomllib.loads(file.read_text(encoding="utf-8")), error)
    except (ValueError, RecursionError) as cause:
        raise error(file, "", f"is not TOML: {cause}", "fix its syntax") from cause
    except OSError as cause:
        what = cause.strerror or str(cause)
        raise error(file, "", what, "make the file readable, or remove it") from cause


def read_list(file: Path, name: str, error: type[FileError]) -> Iterator[Table]:
    """The tables `[[name]]` of a file that has nothing else."""
    document = read(file, error)
    tables = document.data.get(name, [])
    for key in document.data:
        if key != name:
            raise document.bad(key, "is not known", f"put it into an [[{name}]] table")
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise document.bad(name, "is not a list of tables", f"write [[{name}]]")
    for number, each in enumerate(tables, 1):
        yield Table(file, f"{name} {number}, ", each, error)


class Table:
    """A TOML table: each getter checks one key, `finish` refuses keys that no getter read."""

    def __init__(
        self, file: Path, prefix: str, data: Mapping[str, object], error: type[FileError]
    ) -> None:
        self.file = file
        self.data = data
        self._prefix = prefix
        self._error = error
        self._read: set[str] = set()

    def bad(self, key: str, what: str, hint: str) -> FileError:
        """The error about one key of this table."""
        return self._error(self.file, self._prefix + key, what, hint)

    def value(self, key: str) -> object:
        """The value of a key that must be there."""
        self._read.add(key)
        if key not in self.data:
            typo = closest(key, self.data, cutoff=0.75)
            hint = f"rename {typo} to {key}" if typo else f"add {key} = …"
            raise self.bad(key, "is missing", hint)
        return self.data[key]

    def text(self, key: str, *, default: str | None = None) -> str:
        """A text that is not blank."""
        value = self._value(key, default)
        if value is default and default is not None:
            return default
        if not isinstance(value, str) or not value.strip():
            raise self.bad(key, f"is {value!r}", f'write a text: {key} = "…"')
        return value.strip()

    def choice(self, key: str, words: Collection[str]) -> str:
        """One of a few words."""
        word = self.text(key)
        if word not in words:
            raise self.bad(key, f"is {word!r}", f"use one of {', '.join(words)}")
        return word

    def texts(self, key: str, *, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of texts."""
        value = self._value(key, default)
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise self.bad(key, f"is {value!r}", f'write a list of texts: {key} = ["…"]')
        return tuple(value)

    def number(self, key: str, *, default: int | None = None) -> int:
        """A positive number."""
        value = self._value(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise self.bad(key, f"is {value!r}", f"write a positive number: {key} = 100")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """true or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.bad(key, f"is {value!r}", f"write {key} = true or {key} = false")
        return value

    def pattern(self, key: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
        """A regular expression."""
        text = self.text(key)
        try:
            with warnings.catch_warnings():
                # Syntax that a later Python reads in another way.
                warnings.simplefilter("error", FutureWarning)
                return re.compile(text, flags)
        except (re.error, FutureWarning, OverflowError, RecursionError) as cause:
            what = f"is not a regular expression: {cause}"
            raise self.bad(key, what, "fix its syntax") from cause

    def table(self, key: str) -> Table:
        """A table in this one."""
        value = self.value(key)
        if not isinstance(value, dict):
            raise self.bad(key, f"is {value!r}", f"write a table: [{key}]")
        return Table(self.file, f"{self._prefix}{key}.", value, self._error)

    def has(self, key: str) -> bool:
        """Whether an optional key is there."""
        self._read.add(key)
        return key in self.data

    def finish(self) -> None:
        """Refuse keys that no getter read: a misspelt key must not be ignored."""
        for key in self.data:
            if key not in self._read:
                close = closest(key, self._read)
                known = ", ".join(sorted(self._read))
                hint = f"did you mean {close}?" if close else f"remove it, or use one of {known}"
                raise self.bad(key, "is not known", hint)

    def _value(self, key: str, default: object) -> object:
        self._read.add(key)
        return self.value(key) if default is None else self.data.get(key, default)
