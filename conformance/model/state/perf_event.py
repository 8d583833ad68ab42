"""The state of one event of perf: whom it counts, what it has counted, its ring buffer.

Source: kernel/events/core.c:perf_swevent_event; kernel/events/ring_buffer.c:perf_output_begin.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from conformance.abi import perf
from conformance.model.bpf.programs import Program
from conformance.model.errors import NotModelled
from conformance.model.memory import PAGE_SIZE, Page
from conformance.model.state.probes import Kprobe
from conformance.model.state.process import OpenFile, Process
from conformance.model.text.filters import Filter

ANY_CPU = -1

_HEADER = struct.Struct("<IHH")
_LOST = struct.Struct("<QQ")


@dataclass(slots=True, eq=False)
class Ring:
    """A mapped buffer: ``pages`` are the one that describes it and those with records.

    One that its reader cannot write to knows nothing of what was read, and overwrites.
    ``head`` counts bytes from the beginning; ``lost`` samples found no room lately.
    """

    pages: list[Page]
    overwrites: bool
    head: int = 0
    lost: int = 0

    @classmethod
    def fresh(cls, count: int, *, overwrites: bool) -> Ring:
        """A ring of so many pages, the first of which describes the others."""
        ring = cls([Page() for _ in range(count)], overwrites)
        place = struct.pack("<QQ", PAGE_SIZE, ring.size)
        ring.pages[0].content[perf.DATA_OFFSET : perf.DATA_OFFSET + len(place)] = place
        return ring

    @property
    def size(self) -> int:
        """Bytes for records."""
        return PAGE_SIZE * (len(self.pages) - 1)

    def sample(self, body: bytes, padding: int) -> None:
        """Append a sample, in front of it how many were lost; padding is left as it was."""
        size = _HEADER.size + len(body) + padding
        lost = _HEADER.size + _LOST.size if self.lost else 0
        if not self.size:
            return
        if not self._has_room(lost + size):
            self.lost += 1
            return
        if lost:
            self._record(perf.PERF_RECORD_LOST, 0, _LOST.pack(0, self.lost), 0)
            self.lost = 0
        self._record(perf.PERF_RECORD_SAMPLE, perf.PERF_RECORD_MISC_KERNEL, body, padding)
        where = slice(perf.DATA_HEAD, perf.DATA_HEAD + 8)
        self.pages[0].content[where] = self.head.to_bytes(8, "little")

    def _has_room(self, size: int) -> bool:
        """ring_buffer_has_space(): a full buffer cannot be told from an empty one."""
        if self.overwrites:
            return True
        where = slice(perf.DATA_TAIL, perf.DATA_TAIL + 8)
        tail = int.from_bytes(self.pages[0].content[where], "little")
        return (tail - self.head - 1) % self.size >= size

    def _record(self, kind: int, misc: int, body: bytes, padding: int) -> None:
        size = _HEADER.size + len(body) + padding
        for byte in _HEADER.pack(kind, misc, size) + body:
            page, offset = divmod(self.head % self.size, PAGE_SIZE)
            self.pages[1 + page].content[offset] = byte
            self.head += 1
        self.head += padding


@dataclass(slots=True, eq=False)
class PerfEvent:
    """struct perf_event.  ``source`` is the serial of the user event it listens to.

    It may listen to a kprobe instead, or be a dummy that listens to nothing.
    ``tasks`` are the processes it follows, none of them everybody; ``cpu`` is the processor
    on which it does, or ANY_CPU.
    """

    source: int | None
    tasks: list[Process]
    cpu: int
    period: int
    sample_type: int
    enabled: bool
    inherit: bool
    exclude_kernel: bool
    kprobe: Kprobe | None = None
    program: Program | None = None
    count: int = 0
    filter: Filter | None = None
    ring: Ring | None = None
    # How many events are still to come before the next sample.
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.period

    @property
    def _of_first(self) -> bool:
        """Whether it follows process 1 of a namespace, which opened it itself."""
        return bool(self.tasks) and self.tasks[0].is_first

    def counts(self, process: Process) -> bool:
        """Whether it follows what a process does now."""
        if not self.enabled or (self.tasks and process not in self.tasks):
            return False
        if self.cpu == ANY_CPU:
            return True
        if process.cpu is None:
            raise NotModelled("an event of one processor, and a process on any")
        return process.cpu == self.cpu

    def occur(self, record: bytes) -> None:
        """perf_tp_event(): one more is counted, and every so many of them are sampled."""
        if self.exclude_kernel or (self.filter is not None and not self.filter.matches(record)):
            return
        self.count += 1
        if not self.period:
            return
        self.left -= 1
        # A sample that shows its period is taken of every event, whatever the period.
        if self.sample_type & perf.PERF_SAMPLE_PERIOD or self.left == 0:
            self._sample(record)
        if self.left == 0:
            self.left = self.period

    def _sample(self, record: bytes) -> None:
        if self.ring is None:
            return
        body, padding = b"", 0
        if self.sample_type & perf.PERF_SAMPLE_IP:
            # perf_fetch_caller_regs(): somewhere in the kernel.
            body += b"\xff" * 8
        if self.sample_type & perf.PERF_SAMPLE_TID:
            # The number that the process has where the event was opened, unless that is unknown.
            body += (1 if self._of_first else 0).to_bytes(4, "little") * 2
        if self.sample_type & perf.PERF_SAMPLE_PERIOD:
            body += (1).to_bytes(8, "little")
        if self.sample_type & perf.PERF_SAMPLE_RAW:
            # The size and the record behind it fill whole words of 8 bytes.
            padding = -(4 + len(record)) % 8
            body += (len(record) + padding).to_bytes(4, "little") + record
        self.ring.sample(body, padding)


def perf_event_of(file: OpenFile) -> PerfEvent | None:
    """The perf event that a descriptor refers to, None for any other file."""
    return file.object if isinstance(file.object, PerfEvent) else None
