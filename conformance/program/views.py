"""Reading a text file the way it is to be compared: a pure function of text and view."""

from __future__ import annotations

import re

from conformance.program.operations import ReadFile, View

# trace.c:print_trace_fmt: "task-pid [cpu] flags time: " in front of every record.
_TRACE_LINE = re.compile(r"^ *.{1,24}-\d+ +(?:\([ \d-]+\) +)?\[\d+\] \S+ +[\d.]+: (.*)$")
_FORMAT_ID = re.compile(rb"^ID: \d+$", re.MULTILINE)
# "\tfield:char msg[20];\toffset:8;": the brackets of an array field behind its name.  The
# __data_loc form keeps its brackets with the type, where the kernel prints the text as is.
_ARRAY_LENGTH = re.compile(rb"^(\tfield:(?!__data_loc)[^;]*)\[[^\]]*\](;\toffset:)", re.MULTILINE)


def read(operation: ReadFile, data: bytes) -> bytes:
    """The part of ``data`` that ``operation`` compares."""
    match operation.view:
        case View.EXACT:
            return data
        case View.OWN:
            return _own_lines(data, operation.prefix.encode())
        case View.STRUCTURE:
            return _ARRAY_LENGTH.sub(rb"\1[]\2", _without_id(data))
        case View.ARRAYS:
            return _without_id(data)
        case View.RECORDS:
            return _records(data, operation.prefix)


def _own_lines(data: bytes, prefix: bytes) -> bytes:
    """Lines of user_events_status or dynamic_events whose event name starts with prefix."""
    lines = (line + b"\n" for line in data.split(b"\n") if line)
    return b"".join(line for line in lines if line.removeprefix(b"u:").startswith(prefix))


def _without_id(data: bytes) -> bytes:
    return _FORMAT_ID.sub(b"ID: N", data, count=1)


def _records(data: bytes, prefix: str) -> bytes:
    """Bodies of the trace lines of own events, one per line."""
    bodies = []
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        found = _TRACE_LINE.match(line)
        if found is not None and found[1].startswith(prefix):
            bodies.append(found[1] + "\n")
    return "".join(bodies).encode("utf-8", "surrogateescape")
