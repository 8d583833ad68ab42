"""Read files of TOML tables; every error names file, key and hint."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.expectations.condition import Condition, ConditionError
from conformance.expectations.errors import ExpectationError
from conformance.results.case_result import CASE_ID


def read_tables(file: Path, name: str) -> list[dict[str, Any]]:
    """The tables ``[[name]]`` of a file that has nothing else.  Raises ExpectationError."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        what = error.strerror or str(error)
        raise ExpectationError(file, "file", what, "make it readable") from error
    except (ValueError, RecursionError) as error:
        raise ExpectationError(file, "file", f"is not TOML: {error}", "fix its syntax") from error
    tables = document.pop(name, [])
    if document:
        key = next(iter(document))
        raise ExpectationError(file, key, "is not known", f"put it into an [[{name}]] table")
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise ExpectationError(file, name, "is not a list of tables", f"write [[{name}]]")
    return tables


@dataclass(frozen=True, slots=True)
class Table:
    """One table, the ``number``th of a file counted from 1; ``noun`` names it in errors.

    Every method raises ExpectationError.
    """

    file: Path
    number: int
    table: dict[str, Any]
    noun: str

    def check_keys(self, required: Sequence[str], optional: Sequence[str]) -> None:
        """Refuse unknown and missing keys."""
        for key in self.table:
            if key not in (*required, *optional):
                known = ", ".join((*required, *optional))
                raise self.error(key, "is not known", f"use one of {known}")
        for key in required:
            if key not in self.table:
                raise self.error(key, "is missing", f"add {key} = …")

    def text(self, key: str) -> str:
        """A non-empty text."""
        value = self.table[key]
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"is {value!r}", "write a text that is not empty")
        return value.strip()

    def optional_text(self, key: str) -> str:
        """A non-empty text, "" if the key is missing."""
        return self.text(key) if key in self.table else ""

    def choice(self, key: str, words: Sequence[str]) -> str:
        """One of a few words."""
        word = self.text(key)
        if word not in words:
            raise self.error(key, f"is {word!r}", f"use one of {', '.join(words)}")
        return word

    def case(self, key: str) -> str:
        """The id of a case or of a function."""
        id = self.text(key)
        if not CASE_ID.fullmatch(id):
            raise self.error(key, f"is {id!r}", "write surface.name or surface.name.variant")
        return id

    def url(self, key: str) -> str:
        """A web address."""
        url = self.text(key)
        if not url.startswith(("https://", "http://")):
            raise self.error(key, f"is {url!r}", "write https://…")
        return url

    def pattern(self, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
        """The regular expression of the key ``pattern``."""
        try:
            with warnings.catch_warnings():
                # Syntax that a later Python will read differently.
                warnings.simplefilter("error", FutureWarning)
                return re.compile(self.text("pattern"), flags)
        except (re.error, FutureWarning, OverflowError, RecursionError) as error:
            what = f"is not a regular expression: {error}"
            raise self.error("pattern", what, "fix its syntax") from error

    def condition(self) -> Condition:
        """The condition of the key ``when``."""
        try:
            return Condition.parse(self.text("when"))
        except ConditionError as error:
            raise self.error("when", str(error), "write it like release >= 6.1") from error

    def error(self, key: str, what: str, hint: str) -> ExpectationError:
        """The exception for a key."""
        return ExpectationError(self.file, f"{self.noun} {self.number}, {key}", what, hint)
