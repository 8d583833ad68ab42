"""Views: the part of a text file that is compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from conformance.ops.decoding import trace_text

# A line of dynamic_events or user_events_status: kind or index, system, and the start that
# client.user_events gives to names.
_GENERATED = re.compile(rb"(?:\w+:)?(?:\w+/)?(t\d+_)")
_TOTALS = re.compile(rb"(?:Active|Busy|Max): \d+|")
# Suffix of a definition in the first version, which shows the status bits of listeners.
_USED_BY = re.compile(rb" \(Used by(?: ftrace)?(?: perf)?(?: other)?\)$", re.MULTILINE)
# Lines of per_cpu/cpuN/stats that differ between runs.
_SIZE_AND_TIMES = re.compile(rb"^(?:bytes|oldest event ts|now ts): *[\d.]+\n", re.MULTILINE)
# trace_events_trigger.c:trigger_show, without triggers.
_AVAILABLE = re.compile(rb"# Available triggers:\n#(?: \w+)+\n")
# trace.c:tracing_err_log_seq_show
_ERROR_TIME = re.compile(rb"^\[ *\d+\.\d{6}\] ", re.MULTILINE)
_FORMAT_ID = re.compile(rb"^ID: \d+$", re.MULTILINE)
# "\tfield:char msg[20];\toffset:8;": the brackets of an array after the field's name.  A __data_loc
# field keeps its brackets in the type.  The limits keep the time for malformed input linear.
_ARRAY_LENGTH = re.compile(
    rb"^(\tfield:(?!__data_loc)[^;\n]{0,600})\[[^\]\n]{0,40}\](;\toffset:)", re.MULTILINE
)


class View(StrEnum):
    """Which part of a text file is compared."""

    EXACT = "exact"
    # user_events_status or dynamic_events without totals and events of other programs.
    OWN = "own"
    # OWN without the listeners that dynamic_events of the first version appends.
    DEFINITIONS = "definitions"
    # A `format` file without its id and without the lengths of arrays.
    STRUCTURE = "structure"
    # A `format` file without its id.
    ARRAYS = "arrays"
    # Trace lines, as ``trace_text`` describes them.
    RECORDS = "records"
    # The bodies of RECORDS, sorted and each once, for concurrent writers.
    DISTINCT = "distinct"
    # per_cpu/cpuN/stats without bytes and times.
    COUNTS = "counts"
    # `trigger` without the list of available triggers.
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
            return _on_text(data, lambda text: trace_text.describe(text, sizes))
        case View.DISTINCT:
            return _on_text(data, lambda text: trace_text.distinct(text, sizes))
        case View.COUNTS:
            return _SIZE_AND_TIMES.sub(b"", data)
        case View.TRIGGERS:
            return b"" if _AVAILABLE.fullmatch(data) else data
        case View.ERRORS:
            return _ERROR_TIME.sub(b"", data)


def _own_lines(data: bytes, prefix: bytes) -> bytes:
    """Lines of user_events_status or dynamic_events, except totals and events of other programs.

    Names of the program's own events start with ``prefix``; without one all lines are kept.
    """
    if not prefix:
        return data
    lines = (line for line in data.split(b"\n") if not _TOTALS.fullmatch(line))
    return b"".join(line + b"\n" for line in lines if named_by(line) in (prefix, None))


def named_by(line: bytes) -> bytes | None:
    """The start of a generated name, None for any other line: every program sees that."""
    found = _GENERATED.match(line)
    return None if found is None else found[1]


def _without_id(data: bytes) -> bytes:
    return _FORMAT_ID.sub(b"ID: N", data, count=1)


def _on_text(data: bytes, view: Callable[[str], str]) -> bytes:
    """Apply a view of text; bytes outside UTF-8 are kept."""
    text = data.decode("utf-8", "surrogateescape")
    return view(text).encode("utf-8", "surrogateescape")
