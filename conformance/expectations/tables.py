"""Files of tables in TOML: what expectations and rules have in common when they are read."""

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


def read_tables(file: Path, name: str) -> list[dict[str, Any]]:
    """The tables ``[[name]]`` of a file that has nothing else.

    Raises ExpectationError naming file and hint.
    """
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExpectationError(
            file, "file", error.strerror or str(error), "make it readable"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ExpectationError(file, "file", f"is not TOML: {error}", "mend its syntax") from error
    tables = document.pop(name, [])
    if document:
        key = next(iter(document))
        raise ExpectationError(file, key, "is not known", f"put it into an [[{name}]] table")
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise ExpectationError(file, name, "is not a list of tables", f"write [[{name}]]")
    return tables


@dataclass(frozen=True, slots=True)
class Table:
    """One table being read; ``number`` counts them from 1, ``called`` is what each of them is.

    Every method raises ExpectationError naming file, key and hint.
    """

    file: Path
    number: int
    table: dict[str, Any]
    called: str

    def check_keys(self, required: Sequence[str], optional: Sequence[str]) -> None:
        """See that there are all keys that have to be, and no other than may be."""
        for key in self.table:
            if key not in (*required, *optional):
                known = ", ".join((*required, *optional))
                raise self.error(key, "is not known", f"use one of {known}")
        for key in required:
            if key not in self.table:
                raise self.error(key, "is missing", f"add {key} = …")

    def text(self, key: str) -> str:
        """A text that is not empty."""
        value = self.table[key]
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"is {value!r}", "write a text that is not empty")
        return value.strip()

    def optional_text(self, key: str) -> str:
        """The same, "" where there is none."""
        return self.text(key) if key in self.table else ""

    def pattern(self, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
        """The regular expression of the key ``pattern``."""
        try:
            with warnings.catch_warnings():
                # Of what Python will read in another way one day.
                warnings.simplefilter("error", FutureWarning)
                return re.compile(self.text("pattern"), flags)
        except (re.error, FutureWarning, OverflowError, RecursionError) as error:
            raise self.error("pattern", f"is no regular expression: {error}", "mend it") from error

    def condition(self) -> Condition:
        """The condition of the key ``when``."""
        try:
            return Condition.parse(self.text("when"))
        except ConditionError as error:
            raise self.error("when", str(error), "write it like release >= 6.1") from error

    def error(self, key: str, what: str, hint: str) -> ExpectationError:
        """What to raise about a key."""
        return ExpectationError(self.file, f"{self.called} {self.number}, {key}", what, hint)
