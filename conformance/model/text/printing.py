"""Text of a record in `trace`: print_event_fields() and print_fields().

A record is common fields, payload, and up to four bytes of padding that no case may depend on.
Source: kernel/trace/trace_output.c; before 6.4 trace_events_user.c:user_event_print_trace
and trace_seq.c:trace_seq_hex_dump.
"""

from __future__ import annotations

import struct

from conformance.abi.grammar import TRACE_ENTRY_SIZE
from conformance.abi.profile import Profile
from conformance.model.errors import NotModelled
from conformance.model.text.definition import Field
from conformance.ops.decoding.trace_text import dump_line

_INTEGER_CODES = {2: "<H", 4: "<I", 8: "<Q"}
_OVERFLOW = "<OVERFLOW>"
_DUMP_WIDTH = 16
# Size of a trace_seq before 6.8, and how much of it the head of a line takes.
_SEQ_SIZE = 4096
_MIN_HEAD, _MAX_HEAD = 40, 64
# Size of the word of a dynamic field.
_WORD = 4


def record_text(tracepoint: str, fields: tuple[Field, ...], record: bytes, profile: Profile) -> str:
    """The trace line of ``record`` (header and payload) after its head."""
    if not profile.has("remote_enable"):
        return _dump(record, profile)
    return f"{_decoded(tracepoint, fields, record, profile)}\n"


def _dump(record: bytes, profile: Profile) -> str:
    """A hex dump, 16 bytes per line, terminated by NUL.

    A dump that does not fit in the trace_seq is omitted (trace_seq.c:trace_seq_hex_dump).
    """
    starts = range(0, len(record), _DUMP_WIDTH)
    dump = "".join(f"{dump_line(at, record[at : at + _DUMP_WIDTH])}\n" for at in starts)
    if len(dump) > _SEQ_SIZE - _MIN_HEAD:
        # trace.c:s_show
        return "\n[LINE TOO BIG]\n" if profile.has("long_lines_marked") else "\n"
    if len(dump) > _SEQ_SIZE - _MAX_HEAD:
        raise NotModelled("a dump that fits or not, depending on the head of its line")
    return f"\n{dump}\0"


def _decoded(tracepoint: str, fields: tuple[Field, ...], record: bytes, profile: Profile) -> str:
    if not fields:
        return f"{tracepoint}:No fields found"
    values = "".join(f" {field.name}={_value(field, record, profile)}" for field in fields)
    return f"{tracepoint}:{values}"


def _value(field: Field, record: bytes, profile: Profile) -> str:
    """print_fields(), which by filter_assign_type() searches for words anywhere in the type."""
    raw = record[field.offset : field.offset + field.size]
    if len(raw) < field.size:
        raise NotModelled("a record shorter than its fields")
    absolute, relative = "__data_loc" in field.type, "__rel_loc" in field.type
    if "char" in field.type and (absolute or relative):
        return _dynamic_string(field, record, profile, relative=not absolute)
    if "cpumask_t" in field.type and absolute and profile.has("cpumasks_typed"):
        return "<INVALID-TYPE>"
    if "char" in field.type and "[" in field.type:
        return _text(raw)
    if field.size == _WORD and (absolute or relative):
        data = _located(field, record, relative=not absolute)
        return _OVERFLOW if data is None else ",".join(f"{byte:02x}" for byte in data)
    return _integer(raw, profile)


def _integer(raw: bytes, profile: Profile) -> str:
    if len(raw) == 1:
        printable = 0x20 <= raw[0] < 0x7F or raw[0] >= 0xA0
        return (f"'{chr(raw[0])}'" if printable else "") + f"({raw[0]})"
    if len(raw) not in _INTEGER_CODES:
        return "<INVALID-SIZE>"
    if len(raw) == 8 and profile.has("long_values_as_symbols"):
        return _pointer(raw)
    value = struct.unpack(_INTEGER_CODES[len(raw)], raw)[0]
    # An unsigned short is promoted without a sign; 4 and 8 bytes print as signed.
    signed = value if len(raw) == 2 else int.from_bytes(raw, "little", signed=True)
    return f"{value:#x} ({signed})" if value else f"0x0 ({signed})"


def _pointer(raw: bytes) -> str:
    value = int.from_bytes(raw, "little")
    if value >= 1 << 63:
        raise NotModelled("a 64-bit value that may be printed as a symbol")
    return f"{value:#x} ({value})"


def _dynamic_string(field: Field, record: bytes, profile: Profile, *, relative: bool) -> str:
    data = _located(field, record, relative=relative)
    if data is None:
        return _OVERFLOW
    if profile.has("unprintable_text_as_hex") and any(
        map(_is_unprintable, data.replace(b"\0", b""))
    ):
        return _in_both_ways(data)
    return _text(data)


def _is_unprintable(byte: int) -> bool:
    """!(isascii(c) && isprint(c))"""
    return not 0x20 <= byte < 0x7F


def _in_both_ways(data: bytes) -> str:
    """All bytes as characters or dots, then as %02x of a signed char."""
    shown = "".join("." if _is_unprintable(byte) else chr(byte) for byte in data)
    digits = ":".join(f"{byte:02x}" if byte < 0x80 else f"ffffff{byte:02x}" for byte in data)
    return f"{shown} ({digits})"


def _located(field: Field, record: bytes, *, relative: bool) -> bytes | None:
    """The data of a dynamic field, None if it ends after the record.

    A struct type that contains "__data_loc" is not validated: its length may be negative, and then
    prints nothing (vsprintf.c:format_decode).
    """
    raw = record[field.offset : field.offset + _WORD]
    if len(raw) < _WORD:
        raise NotModelled("a dynamic field whose word ends after its record")
    offset = int.from_bytes(raw[:2], "little")
    size = int.from_bytes(raw[2:], "little", signed=True)
    if relative:
        offset += field.offset + _WORD
    padded = (len(record) + 3) // 4 * 4
    if offset + size > padded:
        return None
    if size > 0 and offset < TRACE_ENTRY_SIZE:
        raise NotModelled("dynamic data in the common fields, which hold the event's ID")
    if size > 0 and offset + size > len(record):
        raise NotModelled("dynamic data that reaches into the padding of its record")
    return record[offset : offset + max(size, 0)]


def _text(raw: bytes) -> str:
    """%.*s: up to the first NUL."""
    return raw.split(b"\0")[0].decode("latin-1")
