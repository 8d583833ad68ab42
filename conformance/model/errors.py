"""Errors of the model, and exceptions that end a modelled system call."""

from __future__ import annotations


class ModelError(Exception):
    """The model cannot answer; fix the case or the model."""


class NotModelled(ModelError):
    """The model does not cover an operation, path or address."""


class TooManyStates(ModelError):
    """Too much pending work to follow; the case must settle first."""


class Errno(Exception):
    """Ends a modelled system call with an errno."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class RawReturn(Exception):
    """Ends a modelled system call with a return value that is not an errno."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value
