"""Structs from JSON, with errors that name the place in the document."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct, ValidationError, convert

SCHEMA = 1
"""Version of the documents; readers refuse any other."""

_Record = TypeVar("_Record", bound=Struct)


class SchemaError(ValueError):
    """A document that does not follow schema 1; names the place, such as ``cases[3].blame``."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")


def decode(kind: type[_Record], data: object, where: str) -> _Record:
    """The struct ``kind`` from the output of ``msgspec.to_builtins``.

    Unknown keys are ignored, so that later versions of schema 1 may add some; a key may be missing
    if the field has a default.  Raises SchemaError.
    """
    try:
        return convert(data, kind)
    except ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        raise SchemaError(where + place.removesuffix("`"), what[0].lower() + what[1:]) from None
