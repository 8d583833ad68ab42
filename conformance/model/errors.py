"""Errors of the model.  They mean that a case asks for something outside of it."""

from __future__ import annotations


class ModelError(Exception):
    """The model cannot answer; the case or the model must be mended, not the kernel."""


class NotModelled(ModelError):
    """An operation, path or address the model knows nothing about."""


class TooManyStates(ModelError):
    """More pending transitions than can be followed; the case must settle first."""


class Errno(Exception):
    """Unwinds a modelled system call: the name of the error it fails with."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class RawReturn(Exception):
    """Unwinds a modelled system call that returns a raw number no errno stands for."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value
