"""The program of a random walk as the text of a case: calls of the client, as they were made."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

_PLAIN = (str, bytes, int, bool, type(None))


class Spoken:
    """An object of the client that notes each call, and what it returns.

    Plain values pass unchanged; objects that calls return are noted as variables.
    """

    def __init__(self, subject: Any, name: str, lines: list[str], prefix: str) -> None:
        self._subject = subject
        self._name = name
        self._lines = lines
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._subject, name)
        if callable(value):
            return self._noting(f"{self._name}.{name}", value)
        if isinstance(value, _PLAIN):
            return value
        return Spoken(value, f"{self._name}.{name}", self._lines, self._prefix)

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function of the client that takes objects."""
        return self._noting(function.__name__, function)(*arguments, **named)

    @property
    def subject(self) -> Any:
        """The object itself."""
        return self._subject

    def _noting(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            words = [self._text(each) for each in arguments]
            words += [f"{key}={self._text(each)}" for key, each in named.items()]
            at = len(self._lines)
            variable = f"v{at + 1}"
            self._lines.append(f"{variable} = {name}({', '.join(words)})")
            value = function(
                *map(_bare, arguments), **{key: _bare(each) for key, each in named.items()}
            )
            if isinstance(value, _PLAIN):
                return value
            return Spoken(value, variable, self._lines, self._prefix)

        return call

    def _text(self, value: Any) -> str:
        if isinstance(value, Spoken):
            return value._name
        if isinstance(value, Enum):
            return str(value)
        if isinstance(value, str) and self._prefix in value:
            text = repr(value.replace("{", "{{").replace("}", "}}"))
            return "f" + text.replace(self._prefix, "{ue.prefix}")
        return repr(value)


def _bare(value: Any) -> Any:
    return value._subject if isinstance(value, Spoken) else value
