"""Lines of `trace`, `snapshot` and trace_pipe, one per record, with all that is comparable.

Source: trace.c:s_show, print_event_info, print_snapshot_help, print_trace_line, print_trace_fmt;
trace_output.c:trace_print_context, trace_stack_print.  A line is ``KIND: TEXT``:

====================  ==========================================================================
``entries``           records in the buffer, and records written to it
``snapshot``          whether the spare buffer is allocated; the kernel says so if it is empty
``task N``            a record of a task, the N-th to appear in the text
``task N dump``       the payload of a record before 6.4, as hexadecimal bytes
``line``              any other line, as it is: `[LINE TOO BIG]`, lost events, the rest of a text
====================  ==========================================================================

A head with an interrupt flag, or a time before that of the previous line, shows in the kind.
Omitted because they differ between runs or configurations: name and pid of the task, its
processor, time, the flags need_resched and the counters of preemption; the number of an unknown
type; legend, tracer and number of processors; the functions of a stack trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from conformance.abi.grammar import TRACE_ENTRY_SIZE
from conformance.ops.decoding.trace_page import padded

# "task-pid (tgid) [cpu] flags time: " in front of every record.
_RECORD = re.compile(
    r" *.{1,24}-(?P<pid>\d+) +(?:\([ \d-]+\) +)?\[\d+\] (?P<flags>\S+) +(?P<time>[\d.]+): "
    r"(?P<body>.*)"
)
_ENTRIES = re.compile(r"# entries-in-buffer/entries-written: (\d+/\d+) +#P:\d+")
_SNAPSHOT = re.compile(r"# \* Snapshot is (\w+) \*")
# The legend of the heads, and what can be written to `snapshot`.
_LEGEND = re.compile(
    r"# tracer: nop"
    r"|#[ |/_]* [-_=|]+=> [\w/-]+|#[ |/]+ delay|#[ |]*"
    r"|# +TASK-PID +(?:TGID +)?CPU# +(?:\|+ +)?TIMESTAMP +FUNCTION"
    r"|# Snapshot commands:|# echo \d > snapshot : .*|# {20,}\S.*"
)
# A line of a dump: offset, up to 16 bytes, and their text from column 59 on.
_DUMP = re.compile(r"[0-9a-f]{8}: ((?:[0-9a-f]{2} | {3}){16}) .*")
_UNKNOWN_TYPE = re.compile(r"^Unknown type \d+$")
_TASK, _DUMPED = "task ", " dump"
_STACK = "<stack trace>"
_FUNCTION = re.compile(r" => \S.*")


def describe(text: str, sizes: Sequence[int] = ()) -> str:
    """The lines of a text; ``sizes`` are the payload bytes of dumped records."""
    return "".join(f"{line}\n" for line in _Reader(sizes).lines(text))


def distinct(text: str, sizes: Sequence[int] = ()) -> str:
    """The lines without counts and heads, sorted and each once."""
    lines = (line.partition(": ") for line in describe(text, sizes).split("\n") if line)
    kept = {body if kind.startswith(_TASK) else f"{kind}: {body}" for kind, _, body in lines}
    return "".join(f"{line}\n" for line in sorted(kept) if not line.startswith("entries: "))


def bodies(described: str, *prefixes: str) -> list[str]:
    """The records in a text of ``describe`` that start with a prefix, and all dumped ones."""
    lines = (line.partition(": ") for line in described.split("\n"))
    records = ((kind, body) for kind, _, body in lines if kind.startswith(_TASK))
    return [body for kind, body in records if kind.endswith(_DUMPED) or body.startswith(prefixes)]


class _Reader:
    """Reads a text line by line."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = iter(sizes)
        self._tasks: dict[str, int] = {}
        self._time = 0.0
        # Kind and bytes of the record whose dump is being read.
        self._dump: tuple[str, list[str]] | None = None
        self._in_stack = False

    def lines(self, text: str) -> Iterator[str]:
        for line in text.removesuffix("\n").split("\n") if text else ():
            if not self._continues(line):
                # The text of a dump ends with a NUL.
                end = "\0" if self._dump is not None else ""
                yield from self._dumped()
                if line != end or not end:
                    yield from self._line(line.removeprefix(end))
        yield from self._dumped()

    def _continues(self, line: str) -> bool:
        """Whether the line belongs to the record before."""
        if self._in_stack and _FUNCTION.fullmatch(line):
            return True
        found = _DUMP.fullmatch(line)
        if self._dump is None or found is None:
            return False
        raw = self._dump[1]
        # A line that does not match its bytes is kept as it is, so that it differs.
        right = line == dump_line(len(raw), bytes.fromhex(found[1]))
        raw += found[1].split() if right else [line]
        return True

    def _dumped(self) -> Iterator[str]:
        if self._dump is None:
            return
        kind, raw = self._dump
        self._dump = None
        size = next(self._sizes, None)
        if size is not None:
            record = TRACE_ENTRY_SIZE + size
            raw = raw[:record] if len(raw) == padded(record) else raw
        yield f"{kind}{_DUMPED}: {' '.join(raw[TRACE_ENTRY_SIZE:])}"

    def _line(self, line: str) -> Iterator[str]:
        found = _RECORD.fullmatch(line)
        self._in_stack = found is not None and found["body"] == _STACK
        if found is not None:
            kind = self._kind(found)
            if found["body"]:
                yield f"{kind}: {_UNKNOWN_TYPE.sub('Unknown type N', found['body'])}"
            else:
                self._dump = (kind, [])
        elif entries := _ENTRIES.fullmatch(line):
            yield f"entries: {entries[1]}"
        elif snapshot := _SNAPSHOT.fullmatch(line):
            yield f"snapshot: {snapshot[1]}"
        elif not _LEGEND.fullmatch(line):
            yield f"line: {line}"

    def _kind(self, found: re.Match[str]) -> str:
        number = self._tasks.setdefault(found["pid"], len(self._tasks) + 1)
        irqs_off, interrupt = found["flags"][:1], found["flags"][2:3]
        flags = "" if irqs_off + interrupt == ".." else f" flags {irqs_off}{interrupt}"
        before, self._time = self._time, float(found["time"])
        return f"{_TASK}{number}{flags}{' earlier' if self._time < before else ''}"


def dump_line(offset: int, row: bytes) -> str:
    """A row of lib/hexdump.c: offset, bytes, and their text."""
    shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
    return f"{offset:08x}: {row.hex(' '):<48} {shown}"
