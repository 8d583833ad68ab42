"""Structs to JSON and back, with errors that name the place in the document."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

SCHEMA = 1
"""Version of the documents; readers refuse any other."""

_NAMES = {str: "a string", int: "a number", float: "a number", bool: "true or false"}
_Record = TypeVar("_Record", bound=Struct)
_hints = cache(get_type_hints)


class SchemaError(ValueError):
    """A document that does not follow schema 1; names the place, such as ``cases[3].blame``."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")


def encode(value: object) -> Any:
    """``value`` as JSON types: structs as objects, tuples as lists, enums as strings."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [encode(each) for each in value]
    if isinstance(value, Struct):
        return {name: encode(getattr(value, name)) for name in value.__struct_fields__}
    return value


def decode(kind: type[_Record], data: object, where: str) -> _Record:
    """The struct ``kind`` from the output of ``encode``.

    Unknown keys are ignored, so that later versions of schema 1 may add some; a key may be missing
    if the field has a default.  Raises SchemaError.
    """
    if not isinstance(data, Mapping):
        raise SchemaError(where, f"expected an object, found {_shown(data)}")
    hints = _hints(kind)
    values: dict[str, Any] = {}
    for each in fields(kind):
        if each.name in data:
            values[each.name] = _decode(hints[each.name], data[each.name], f"{where}.{each.name}")
        elif each.required:
            raise SchemaError(f"{where}.{each.name}", "is missing")
    try:
        return kind(**values)
    except ValueError as error:
        raise SchemaError(where, str(error)) from error


def _decode(kind: Any, value: object, where: str) -> Any:
    if kind is Any:
        return value
    if isinstance(kind, UnionType):
        kind = next(each for each in get_args(kind) if each is not NoneType)
        return None if value is None else _decode(kind, value, where)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise SchemaError(where, f"expected a list, found {_shown(value)}")
        inner = get_args(kind)[0]
        return tuple(_decode(inner, each, f"{where}[{n}]") for n, each in enumerate(value))
    if isinstance(kind, type) and issubclass(kind, Struct):
        return decode(kind, value, where)
    if get_origin(kind) is dict:
        if not isinstance(value, dict):
            raise SchemaError(where, f"expected an object, found {_shown(value)}")
        inner = get_args(kind)[1]
        return {key: _decode(inner, each, f"{where}.{key}") for key, each in value.items()}
    if issubclass(kind, StrEnum) and value not in [member.value for member in kind]:
        raise SchemaError(where, f"expected one of {', '.join(kind)}, found {_shown(value)}")
    # JSON may write 2.0 as 2; bool is an int in Python, but true is not a number.
    accepted = (int, float) if kind is float else (str,) if issubclass(kind, str) else (kind,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise SchemaError(where, f"expected {_NAMES[accepted[0]]}, found {_shown(value)}")
    try:
        return kind(value)
    except OverflowError:
        raise SchemaError(where, f"{_shown(value)} is too large") from None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
