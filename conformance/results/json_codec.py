"""Structs from JSON, with errors that name the place in the document."""

from __future__ import annotations

import re
from typing import TypeVar

from msgspec import Struct, ValidationError, convert

from host.text import cut

SCHEMA = 1
"""Version of the documents; readers refuse any other."""

# The message of an error and its place, if that is not the root.
_PLACED = re.compile(r"(?s)(.*?)(?: - at `\$((?:\.\w+|\[\d+\]|\[\.\.\.\])+)`)?")
# Characters of a message, which may quote the document.
_SHOWN = 200
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
    except (ValidationError, UnicodeError) as error:  # a lone surrogate is no UTF-8
        what, place = _PLACED.fullmatch(str(error)).groups("")  # type: ignore[union-attr]
        raise SchemaError(where + place, cut(what[:1].lower() + what[1:], _SHOWN)) from None
