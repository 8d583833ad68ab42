"""Text of a mapped perf ring buffer, one line per record.

Omitted because they differ between runs: the common fields of a raw record, with the ids of
event and process, and the id of the perf event.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from conformance.abi import perf
from conformance.abi.grammar import TRACE_ENTRY_SIZE
from conformance.ops.decoding.trace_page import COMPARED_FLAGS

PAGE_SIZE = 4096
_HEADER = struct.Struct("<IHH")
_LOST = struct.Struct("<QQ")
_WORDS = struct.Struct("<II")


def describe(mapping: bytes, sample_type: int) -> str:
    """Head and tail, then the records between them.

    Understands RAW, PERIOD, TID and IP of ``sample_type``.  Shows "overwritten" if the reader was
    too slow.
    """
    data = mapping[PAGE_SIZE:]
    if not data or len(data) % PAGE_SIZE:
        return f"corrupt: a ring of {len(mapping)} bytes\n"
    head, tail = struct.unpack_from("<QQ", mapping, perf.DATA_HEAD)
    lines = [f"head {head} tail {tail}", *_records(data, head, tail, sample_type)]
    return "".join(f"{line}\n" for line in lines)


def _records(data: bytes, head: int, tail: int, sample_type: int) -> Iterator[str]:
    if head - tail > len(data):
        yield "overwritten"
        return
    position = tail
    while position < head:
        kind, misc, size = _HEADER.unpack(_piece(data, position, _HEADER.size))
        if size < _HEADER.size or position + size > head:
            yield f"corrupt: a record of {size} bytes at {position}"
            return
        body = _piece(data, position + _HEADER.size, size - _HEADER.size)
        try:
            shown = _body(kind, body, sample_type)
        except struct.error:
            # Shorter than its header says.
            shown = f" corrupt: {body.hex(' ')}"
        yield f"{_name(kind)} misc {misc} size {size}{shown}"
        position += size


def _piece(data: bytes, position: int, length: int) -> bytes:
    """Bytes of the ring, which wraps around."""
    start = position % len(data)
    return (data[start:] + data[:start])[:length]


def _name(kind: int) -> str:
    names = {perf.PERF_RECORD_SAMPLE: "SAMPLE", perf.PERF_RECORD_LOST: "LOST"}
    return names.get(kind, f"record {kind}")


def _body(kind: int, body: bytes, sample_type: int) -> str:
    if kind == perf.PERF_RECORD_LOST:
        return f" lost {_LOST.unpack_from(body)[1]}"
    if kind != perf.PERF_RECORD_SAMPLE:
        return f" {body.hex(' ')}"
    text = ""
    thread = None
    if sample_type & perf.PERF_SAMPLE_IP:
        address = int.from_bytes(body[:8], "little")
        text += " in the kernel" if address >> 63 else f" at {address:#x}"
        body = body[8:]
    if sample_type & perf.PERF_SAMPLE_TID:
        process, thread = _WORDS.unpack_from(body)
        text += " one thread" if process == thread else f" process {process} thread {thread}"
        body = body[_WORDS.size :]
    if sample_type & perf.PERF_SAMPLE_PERIOD:
        text += f" period {int.from_bytes(body[:8], 'little')}"
        body = body[8:]
    if sample_type & perf.PERF_SAMPLE_RAW:
        text += _raw(body, thread)
        body = body[4 + int.from_bytes(body[:4], "little") :]
    return text + (f" rest {body.hex(' ')}" if body else "")


def _raw(body: bytes, thread: int | None) -> str:
    """The size of a raw record with its padding, and the payload after its common fields.

    Flags of the common fields are shown if an interrupt wrote the record, or with interrupts off.
    """
    size = int.from_bytes(body[:4], "little")
    record = body[4 : 4 + size]
    entry, payload = record[:TRACE_ENTRY_SIZE], record[TRACE_ENTRY_SIZE:]
    flags = int.from_bytes(entry[2:3], "little") & COMPARED_FLAGS
    common = int.from_bytes(entry[4:8], "little")
    stranger = "" if thread in (None, common) else f" common_pid {common} of {thread}"
    if thread == 1 and stranger:
        # In a PID namespace; the global pid is arbitrary.
        stranger = " of process 1"
    unusual = f" flags {flags:#x}" if flags else ""
    return f" raw {size}{stranger}{unusual}: {payload.hex(' ')}"
