"""A TOML file being read key by key, each checked, and none left over."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from kernels.errors import BadCatalogEntry


def read(file: Path) -> Table:
    """The table that a whole file is.  Raises BadCatalogEntry."""
    try:
        return Table(file, "", tomllib.loads(file.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise BadCatalogEntry(file, "", f"not valid TOML: {error}", "correct the syntax") from error
    except OSError as error:
        raise BadCatalogEntry(file, "", f"not readable: {error.strerror}", "remove it") from error


class Table:
    """A TOML table being read: each getter checks one key, `finish` refuses keys unread."""

    def __init__(self, file: Path, prefix: str, data: Mapping[str, object]) -> None:
        self.file = file
        self.data = data
        self._prefix = prefix
        self._read: set[str] = set()

    def bad(self, key: str, what: str, hint: str) -> BadCatalogEntry:
        """The error about one key of this table."""
        return BadCatalogEntry(self.file, self._prefix + key, what, hint)

    def text(self, key: str, *, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str) or not value:
            raise self.bad(key, f"must be a text, not {value!r}", f'write {key} = "…"')
        return value

    def texts(self, key: str, *, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        value = self._get(key, default)
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise self.bad(key, f"must be a list of texts, not {value!r}", f'write {key} = ["…"]')
        return tuple(value)

    def number(self, key: str) -> int:
        value = self._get(key, None)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise self.bad(key, f"must be a positive number, not {value!r}", f"write {key} = 100")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self.bad(key, f"must be true or false, not {value!r}", f"write {key} = true")
        return value

    def table(self, key: str) -> Table:
        value = self._get(key, None)
        if not isinstance(value, dict):
            raise self.bad(key, f"must be a table, not {value!r}", f"write [{key}]")
        return Table(self.file, f"{self._prefix}{key}.", value)

    def finish(self) -> None:
        """Refuse what nobody asked for: a misspelt key must not be ignored."""
        for key in self.data:
            if key not in self._read:
                close = closest(key, self._read)
                raise self.bad(
                    key, "unknown key", f"did you mean {close}?" if close else "remove it"
                )

    def _get(self, key: str, default: object) -> object:
        self._read.add(key)
        value = self.data.get(key, default)
        if value is None:
            raise self.bad(key, "missing", f"add {key} (see kernels/catalog/6.12.toml)")
        return value


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    from difflib import get_close_matches  # 10 ms that a correct catalog does not need

    return next(iter(get_close_matches(word, list(known), n=1)), None)
