"""Errors of the model, and exceptions that end a modelled system call."""

from __future__ import annotations

import errno


class ModelError(Exception):
    """The model cannot answer; fix the case or the model."""


class NotModelled(ModelError):
    """The model does not cover an operation, path or address."""


class TooManyStates(ModelError):
    """Too much pending work to follow; the case must settle first."""


class Errno(Exception):
    """Ends a modelled system call with an errno.

    ``name`` is the one that observations have: of two names of a number, such as EOPNOTSUPP and
    ENOTSUP, that of ``errno.errorcode``.  ``reason`` says what the caller did wrong, where that is
    known.  Raises ValueError for an unknown name.
    """

    def __init__(self, name: str, reason: str = "") -> None:
        number = getattr(errno, name, None)
        if not isinstance(number, int):
            raise ValueError(f"{name!r} is not the name of an errno")
        self.name = errno.errorcode[number]
        self.reason = reason
        super().__init__(self.name)


class RawReturn(Exception):
    """Ends a modelled system call with a return value that is not an errno."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value
