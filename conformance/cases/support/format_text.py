"""Reading the text of a `format` file the way the cases about it need it."""

from __future__ import annotations


def fields_of(text: str) -> list[str]:
    """The lines of an event's own fields, tabs as single spaces."""
    own = text.partition("\n\n")[2].splitlines()
    return [line.strip().replace("\t", " ") for line in own if line.startswith("\tfield:")]


def print_fmt_of(text: str) -> str:
    """What stands behind ``print fmt: ``."""
    return text.rstrip("\n").rpartition("print fmt: ")[2]
