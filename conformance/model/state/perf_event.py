"""One perf event: the tasks it follows, its count, its ring buffer.

Source: kernel/events/core.c:perf_swevent_event; kernel/events/ring_buffer.c:perf_output_begin.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from conformance.abi import perf
from conformance.model.bpf.programs import Program
from conformance.model.errors import NotModelled
from conformance.model.memory.pages import PAGE_SIZE, Page
from conformance.model.state.probes import Kprobe
from conformance.model.state.process import OpenFile, Process
from conformance.model.text.filters import Filter

ANY_CPU = -1

_HEADER = struct.Struct("<IHH")
_LOST = struct.Struct("<QQ")


@dataclass(slots=True, eq=False)
class Ring:
    """A ring buffer: ``pages`` are the control page and the data pages.

    A ring that is mapped read-only overwrites old records.  ``head`` counts bytes since the start;
    ``lost`` counts samples that found no room since the last record.
    """

    pages: list[Page]
    overwrites: bool
    head: int = 0
    lost: int = 0

    @classmethod
    def fresh(cls, count: int, *, overwrites: bool) -> Ring:
        """A ring of ``count`` pages, the control page included."""
        ring = cls([Page() for _ in range(count)], overwrites)
        place = struct.pack("<QQ", PAGE_SIZE, ring.size)
        ring.pages[0].content[perf.DATA_OFFSET : perf.DATA_OFFSET + len(place)] = place
        return ring

    @property
    def size(self) -> int:
        """Size of the data pages in bytes."""
        return PAGE_SIZE * (len(self.pages) - 1)

    def sample(self, body: bytes, padding: int) -> None:
        """Append a sample, after PERF_RECORD_LOST if any were lost; padding bytes keep their
        content.
        """
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
        """ring_buffer_has_space(): one byte stays free, to tell a full ring from an empty one."""
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
    """struct perf_event; ``source`` is the serial of the user event.

    Instead of a user event, the source is a kprobe, or none for a dummy event.  ``tasks`` are the
    processes that the event follows, empty for all; ``cpu`` is a processor or ANY_CPU.
    """

    source: int | None
    tasks: list[Process] = field(default_factory=list)
    cpu: int = ANY_CPU
    period: int = 0
    sample_type: int = 0
    enabled: bool = True
    inherit: bool = False
    exclude_kernel: bool = False
    kprobe: Kprobe | None = None
    program: Program | None = None
    count: int = 0
    filter: Filter | None = None
    ring: Ring | None = None
    # Whether samples without PERF_SAMPLE_RAW are longer by the raw record.
    raw_unasked: bool = False
    # Whether each sample runs the program again, with a context that the model does not know.
    program_at_sample: bool = False
    # Events until the next sample, None if the period has not been set yet.
    until_sample: int | None = None

    @property
    def _opened_by_init(self) -> bool:
        """Whether the event follows process 1 of a PID namespace, which opened the event."""
        return bool(self.tasks) and self.tasks[0].is_init

    def follows(self, process: Process) -> bool:
        """Whether the event counts what a process does at present."""
        if not self.enabled or (self.tasks and process not in self.tasks):
            return False
        if self.cpu == ANY_CPU:
            return True
        if process.cpu is None:
            raise NotModelled("a perf event of one processor, and a process on any")
        return process.cpu == self.cpu

    def deliver(self, record: bytes) -> None:
        """perf_tp_event(): count the record and sample every ``period``-th one."""
        if self.exclude_kernel or (self.filter is not None and not self.filter.matches(record)):
            return
        self.count += 1
        if not self.period:
            return
        for _ in range(self._overflows()):
            self._sample(record)

    def _overflows(self) -> int:
        """perf_swevent_event(): the number of samples of one event."""
        if self.sample_type & perf.PERF_SAMPLE_PERIOD or self.period == 1:
            # Every event is sampled, whatever the period.
            return 1
        if self.until_sample is None:
            # perf_swevent_set_period() finds a whole period left over, beside this event.
            self.until_sample = self.period - 1
            return 2
        self.until_sample -= 1
        if self.until_sample:
            return 0
        self.until_sample = self.period
        return 1

    def _sample(self, record: bytes) -> None:
        """__perf_event_overflow(): a program that returns 0 suppresses the sample."""
        if self.program is not None and self.program_at_sample:
            context = bytes(self.program.context_size)
            if not self.program.run(context, known=set()):
                return
        if self.ring is None:
            return
        if self.sample_type & perf.PERF_SAMPLE_REGS_INTR:
            raise NotModelled("registers in a sample")
        body = b""
        if self.sample_type & perf.PERF_SAMPLE_IP:
            # perf_fetch_caller_regs(): an address in the kernel.
            body += b"\xff" * 8
        if self.sample_type & perf.PERF_SAMPLE_TID:
            # The pid in the namespace of the opener; 0 if the model does not know the pid.
            body += (1 if self._opened_by_init else 0).to_bytes(4, "little") * 2
        if self.sample_type & perf.PERF_SAMPLE_PERIOD:
            body += (1).to_bytes(8, "little")
        # The size and the record fill whole words of 8 bytes.
        padding = -(4 + len(record)) % 8
        if not self.sample_type & perf.PERF_SAMPLE_RAW:
            # perf_sample_save_raw_data(): the bytes keep their content.
            padding = 4 + len(record) + padding if self.raw_unasked else 0
        else:
            body += (len(record) + padding).to_bytes(4, "little") + record
        self.ring.sample(body, padding)


def perf_event_of(file: OpenFile) -> PerfEvent | None:
    """The perf event that a descriptor refers to, None for any other file."""
    return file.object if isinstance(file.object, PerfEvent) else None
