"""Views: the part of a text file that is compared."""

from __future__ import annotations

import re
from enum import StrEnum

# trace.c:print_trace_fmt: "task-pid [cpu] flags time: " in front of every record.
_TRACE_LINE = re.compile(r"^ *.{1,24}-\d+ +(?:\([ \d-]+\) +)?\[\d+\] \S+ +[\d.]+: (.*)$")
# A line of a dump: offset, up to 16 bytes, and their text from column 59 on.
_DUMP_LINE = re.compile(r"^[0-9a-f]{8}: ((?:[0-9a-f]{2} | {3}){16}) ")
# The common fields, the alignment and the minimum size of a record in the ring buffer
# (ring_buffer.c: a record of eight bytes would look like padding).
_HEADER, _UNIT, _LEAST = 8, 4, 12
_LINE_START = re.compile(rb"^(?:ue?:|\d+:)")
# Suffix of a definition in the first version, which shows the status bits of listeners.
_USED_BY = re.compile(rb" \(Used by(?: ftrace)?(?: perf)?(?: other)?\)$", re.MULTILINE)
# trace.c:print_trace_fmt: a record of an event that is gone.
_UNKNOWN_TYPE = re.compile(rb"^Unknown type \d+$", re.MULTILINE)
# A line of per_cpu/cpuN/stats that counts events.
_COUNT = re.compile(
    rb"^(?:entries|overrun|commit overrun|dropped events|read events): \d+\n", re.MULTILINE
)
# trace.c:tracing_err_log_seq_show
_ERROR_TIME = re.compile(rb"^\[ *\d+\.\d{6}\] ", re.MULTILINE)
# trace_output.c:trace_stack_print; the lines of functions start differently.
_STACK = "<stack trace>"
_FORMAT_ID = re.compile(rb"^ID: \d+$", re.MULTILINE)
# "\tfield:char msg[20];\toffset:8;": the brackets of an array after the field's name.  A __data_loc
# field keeps its brackets in the type.  The limits keep the time for malformed input linear.
_ARRAY_LENGTH = re.compile(
    rb"^(\tfield:(?!__data_loc)[^;\n]{0,600})\[[^\]\n]{0,40}\](;\toffset:)", re.MULTILINE
)


class View(StrEnum):
    """Which part of a text file is compared."""

    EXACT = "exact"
    # Lines of the program's own events; others may remain from earlier programs.
    OWN = "own"
    # Definitions of the program's own events in dynamic_events, without the listeners that the
    # first version of user_events appends.
    DEFINITIONS = "definitions"
    # A `format` file without its id and without the lengths of arrays.
    STRUCTURE = "structure"
    # A `format` file without its id.
    ARRAYS = "arrays"
    # Bodies of trace lines, after the time stamp; the payload of a dumped record as hexadecimal
    # bytes.
    RECORDS = "records"
    # RECORDS, sorted and each once: order and number of concurrent records are unspecified.
    DISTINCT = "distinct"
    # Bodies of all trace lines; the number of an unknown type is replaced by N.
    BODIES = "bodies"
    # The counts in per_cpu/cpuN/stats, without bytes and times.
    COUNTS = "counts"
    # RECORDS, and a line where a stack was recorded.
    STACKS = "stacks"
    # The lines of `trigger`, without the comment that lists available triggers.
    TRIGGERS = "triggers"
    # `error_log` without the times.
    ERRORS = "errors"


def read(view: View, data: bytes, prefix: str = "", sizes: tuple[int, ...] = ()) -> bytes:
    """The part of a file's text that is compared; ``prefix`` and ``sizes`` as in ReadFile."""
    match view:
        case View.EXACT:
            return data
        case View.OWN:
            return _own_lines(data, prefix.encode())
        case View.DEFINITIONS:
            return _own_lines(_USED_BY.sub(b"", data), prefix.encode())
        case View.STRUCTURE:
            return _ARRAY_LENGTH.sub(rb"\1[]\2", _without_id(data))
        case View.ARRAYS:
            return _without_id(data)
        case View.RECORDS:
            return _records(data, (prefix,), sizes)
        case View.DISTINCT:
            records = _records(data, (prefix,), sizes)
            return b"".join(sorted(set(records.splitlines(keepends=True))))
        case View.BODIES:
            bodies = _records(data, ("",), sizes)
            return _UNKNOWN_TYPE.sub(b"Unknown type N", bodies)
        case View.COUNTS:
            return b"".join(_COUNT.findall(data))
        case View.STACKS:
            return _records(data, (prefix, _STACK), sizes)
        case View.TRIGGERS:
            return b"".join(line for line in data.splitlines(True) if not line.startswith(b"#"))
        case View.ERRORS:
            return _ERROR_TIME.sub(b"", data)


def _own_lines(data: bytes, prefix: bytes) -> bytes:
    """Lines of user_events_status or dynamic_events of events whose name starts with ``prefix``.

    Before 6.4 a status line starts with the event's index.
    """
    lines = (line + b"\n" for line in data.split(b"\n") if line)
    return b"".join(line for line in lines if _LINE_START.sub(b"", line).startswith(prefix))


def _without_id(data: bytes) -> bytes:
    return _FORMAT_ID.sub(b"ID: N", data, count=1)


def _records(data: bytes, prefixes: tuple[str, ...], sizes: tuple[int, ...]) -> bytes:
    """Bodies of the trace lines that start with one of ``prefixes``, one per line."""
    bodies: list[str] = []
    dumps: list[str] = []
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        dumped = _DUMP_LINE.match(line)
        if dumped is not None and dumps:
            # A dump line that does not match its bytes is kept as it is, so that it differs.
            right = line == _dump_line(len(dumps[-1].split()), bytes.fromhex(dumped[1]))
            dumps[-1] += dumped[1] if right else line
            continue
        # The text of a dump ends with a NUL.
        found = _TRACE_LINE.match(line.lstrip("\0"))
        if found is None:
            continue
        if not found[1]:
            dumps.append("")
        elif found[1].startswith(prefixes):
            bodies.append(found[1] + "\n")
    payloads = [_payload(dump, number, sizes) for number, dump in enumerate(dumps)]
    return "".join(bodies + payloads).encode("utf-8", "surrogateescape")


def _dump_line(offset: int, row: bytes) -> str:
    """A row of lib/hexdump.c: offset, bytes, and their text."""
    shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
    return f"{offset:08x}: {row.hex(' '):<48} {shown}"


def _payload(dump: str, number: int, sizes: tuple[int, ...]) -> str:
    """The payload of a dumped record, without padding if the size is the expected one."""
    raw = dump.split()
    if number < len(sizes):
        record = _HEADER + sizes[number]
        padded = max(_LEAST, -(-record // _UNIT) * _UNIT)
        raw = raw[:record] if len(raw) == padded else raw
    return " ".join(raw[_HEADER:]) + "\n"
