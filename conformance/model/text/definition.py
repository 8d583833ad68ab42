"""Registration strings: parse the fields, compare definitions.

Text is ``str`` with one character per byte (latin-1), since the kernel compares and prints bytes.
"""

from __future__ import annotations

import re

from msgspec import Struct

from conformance.abi import grammar
from conformance.abi.profile import Profile
from conformance.model.errors import Errno, NotModelled, RawReturn
from conformance.model.text.numbers import parse_unsigned

# lib/ctype.c: isspace() of the kernel includes the no-break space of latin-1.
SPACES = "\t\n\v\f\r \xa0"
_U32 = 1 << 32
_INT_MAX = (1 << 31) - 1
# MAX_FIELD_ARG_NAME less its NUL, up to 6.0.
_COMPARED = 255
# A percent sign in a format: flags, width and precision have no effect.
_PERCENT = re.compile(r"%[-+ #0]*\d*(?:\.\d*)?%")


class Field(Struct, frozen=True):
    """A field of an event: type and name as written, offset and size in bytes."""

    type: str
    name: str
    offset: int
    size: int

    @property
    def signed(self) -> bool:
        """Whether `format` shows the field as signed (user_event_parse_field: type[0] != 'u')."""
        return not self.type.startswith("u")

    @property
    def is_struct(self) -> bool:
        """Whether the definition shows the size."""
        return self.type.startswith(grammar.STRUCT_PREFIX)

    @property
    def is_location(self) -> bool:
        """Whether the field is __data_loc or __rel_loc."""
        return self.type.startswith(grammar.LOCATION_PREFIXES)

    @property
    def is_relative(self) -> bool:
        """Whether the offset counts from the end of the word (__rel_loc)."""
        return self.type.startswith("__rel_loc ")

    def located(self, record: bytes) -> tuple[int, int]:
        """Start in the record, and size, of the data of a dynamic field."""
        end = self.offset + self.size
        word = int.from_bytes(record[self.offset : end], "little")
        return (word & 0xFFFF) + (end if self.is_relative else 0), word >> 16

    @property
    def text(self) -> str:
        """The field as dynamic_events shows it (user_event_show)."""
        return f"{self.type} {self.name}" + (f" {self.size}" if self.is_struct else "")


class Command(Struct, frozen=True):
    """The parts of a registration string (user_event_parse_cmd)."""

    name: str
    arguments: str | None
    # The text after the colon of the name, None without a colon.
    flags: str | None

    @classmethod
    def parse(cls, raw: str) -> Command:
        """Split at the first space, then the name at the first colon."""
        name, space, arguments = raw.partition(" ")
        name, colon, flags = name.partition(":")
        return cls(name, arguments if space else None, flags if colon else None)


def split_arguments(text: str) -> list[str]:
    """argv_split(): split at runs of white space."""
    return re.findall(rf"[^{SPACES}]+", text)


def registration_tokens(arguments: str | None, profile: Profile) -> list[str]:
    """The tokens that are compared when a name is registered again (user_event_argv_split)."""
    if arguments is None:
        return []
    spaced = re.sub(rf";(?![{SPACES}])", "; ", arguments)
    if spaced != arguments and profile.has("unspaced_fields_match"):
        arguments = spaced
    return split_arguments(arguments)


def fields_match(fields: tuple[Field, ...], tokens: list[str], profile: Profile) -> bool:
    """user_fields_match(): whether tokens describe exactly these fields.

    Tokens up to one with a semicolon are joined by single spaces, and compared with the text of a
    field.
    """
    if not tokens:
        return not fields
    position = 0
    for field in fields:
        run: list[str] = []
        while position < len(tokens):
            run.append(tokens[position])
            position += 1
            if ";" in run[-1]:
                break
        if not run:
            return False
        known = [field.type, field.name]
        if field.is_struct and profile.has("struct_size_matched"):
            known.append(str(field.size))
        if not profile.has("strings_formatted_safely"):
            run, known = [*map(_formatted, run)], [*map(_formatted, known)]
        given, text = " ".join(run), " ".join(known) + (";" if ";" in run[-1] else "")
        if not profile.has("strings_formatted_safely") and max(len(given), len(text)) > _COMPARED:
            raise NotModelled(f"a field of more than {_COMPARED} characters, which the kernel cuts")
        if given != text:
            return False
    return position == len(tokens)


def _formatted(text: str) -> str:
    """snprintf() of a text without arguments (user_field_match before 6.1)."""
    shown = _PERCENT.sub("\0", text)
    if "%" in shown:
        raise NotModelled(f"the format {text!r}, which reads arguments that it has not got")
    return shown.replace("\0", "%")


def parse_fields(arguments: str | None, profile: Profile) -> tuple[Field, ...]:
    """user_event_parse_fields(): the fields of a new event.

    Raises Errno or RawReturn.
    """
    if arguments is None:
        return ()
    fields: list[Field] = []
    offset = grammar.TRACE_ENTRY_SIZE
    for piece in arguments.split(";"):
        field = _parse_field(piece, offset, profile)
        if field is not None:
            fields.append(field)
            end = offset + field.size
            if end - grammar.TRACE_ENTRY_SIZE > _INT_MAX and profile.fixed("field-offset-wraps"):
                raise Errno("EINVAL")
            offset = end % _U32
    return tuple(fields)


def _parse_field(piece: str, offset: int, profile: Profile) -> Field | None:
    piece = piece.lstrip(SPACES)
    if not piece:
        return None
    prefix = next((text for text in grammar.SPACED_PREFIXES if piece.startswith(text)), None)
    if prefix is None:
        type_, *rest = piece.split(" ")
    else:
        end = piece.find(" ", len(prefix))
        if end < 0:
            raise Errno("EINVAL", f"the field {piece!r} has no name")
        type_, rest = piece[:end], piece[end + 1 :].split(" ")
    if not rest:
        raise Errno("EINVAL", f"the field {piece!r} has no name")
    named_dynamic = "__data_loc" in type_ or "__rel_loc" in type_
    if named_dynamic and prefix == grammar.STRUCT_PREFIX and profile.fixed("struct-data-loc"):
        raise Errno("EINVAL")
    name, *sizes = rest
    return Field(type_, name, offset, _field_size(type_, sizes, prefix, profile))


def _field_size(type_: str, sizes: list[str], prefix: str | None, profile: Profile) -> int:
    if not sizes:
        size = type_size(type_)
    elif prefix != grammar.STRUCT_PREFIX or len(sizes) > 1:
        raise Errno("EINVAL", f"too many words after the field of type {type_!r}")
    else:
        size = parse_unsigned(sizes[0], 10)
    if size == 0:
        raise Errno("EINVAL", f"the field of type {type_!r} has no size")
    if size >= _U32 // 2:
        if profile.fixed("struct-size-errno"):
            raise Errno("EINVAL")
        # The size is an int: a negative one is returned like an errno.
        raise RawReturn(size - _U32)
    return size


def type_size(type_: str) -> int:
    """user_field_size(): the size of a type in bytes.

    Raises Errno("EINVAL") for an unknown type.
    """
    if type_ in grammar.SCALARS:
        return grammar.SCALARS[type_].size
    if type_.startswith(grammar.ARRAY_PREFIXES):
        return _array_size(type_)
    if type_.startswith(grammar.LOCATION_PREFIXES):
        return grammar.LOCATION_SIZE
    raise Errno("EINVAL", f"the type {type_!r} is unknown")


def _array_size(type_: str) -> int:
    text = type_[type_.index("[") + 1 :]
    if not 0 < len(text) < grammar.ARRAY_TEXT_BUFFER or "]" not in text:
        raise Errno("EINVAL", f"the length of {type_!r} is not a number in brackets")
    size = parse_unsigned(text[: text.index("]")], 0)
    if size > grammar.MAX_FIELD_ARRAY_SIZE:
        raise Errno("EINVAL", f"{type_!r} has more than {grammar.MAX_FIELD_ARRAY_SIZE} bytes")
    return size


def print_format(fields: tuple[Field, ...], profile: Profile) -> str:
    """The text after ``print fmt: `` (user_event_set_print_fmt)."""
    if not profile.has("print_fmt_generated"):
        return '""'
    shown = " ".join(f"{field.name}={_conversion(field.type)}" for field in fields)
    arguments = "".join(f", {_print_argument(field)}" for field in fields)
    return f'"{shown}"{arguments}'


def _conversion(type_: str) -> str:
    if type_ in grammar.SCALARS:
        return grammar.SCALARS[type_].conversion
    return grammar.STRING_CONVERSION if "char[" in type_ else grammar.OTHER_CONVERSION


def _print_argument(field: Field) -> str:
    if field.is_location and "char" in field.type:
        return f"__get_rel_str({field.name})" if field.is_relative else f"__get_str({field.name})"
    return f"REC->{field.name}"
