"""Log the client calls of a random program as the text of a case."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

_PLAIN = (str, bytes, int, bool, type(None))


class LoggedObject:
    """A client object that appends each call to a log, as a line of Python.

    Plain values pass unchanged; an object that a call returns becomes a variable of the log.
    """

    def __init__(self, subject: Any, name: str, lines: list[str], prefix: str) -> None:
        self._subject = subject
        self._name = name
        self._lines = lines
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._subject, name)
        if callable(value):
            return self._logging(f"{self._name}.{name}", value)
        if isinstance(value, _PLAIN):
            return value
        return LoggedObject(value, f"{self._name}.{name}", self._lines, self._prefix)

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function of the client that takes objects."""
        return self._logging(function.__name__, function)(*arguments, **named)

    @property
    def subject(self) -> Any:
        """The object itself."""
        return self._subject

    def _logging(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
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
            return LoggedObject(value, variable, self._lines, self._prefix)

        return call

    def _text(self, value: Any) -> str:
        if isinstance(value, LoggedObject):
            return value._name
        if isinstance(value, Enum):
            return str(value)
        if isinstance(value, str) and self._prefix in value:
            text = repr(value.replace("{", "{{").replace("}", "}}"))
            return "f" + text.replace(self._prefix, "{ue.prefix}")
        return repr(value)


def _bare(value: Any) -> Any:
    return value._subject if isinstance(value, LoggedObject) else value
