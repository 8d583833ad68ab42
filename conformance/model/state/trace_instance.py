"""A tracefs instance: its ring buffer, switches and error log.

Source: trace.c and ring_buffer.c, functions named where a rule is applied.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.abi.grammar import TRACE_ENTRY_SIZE
from conformance.model.errors import Errno, NotModelled
from conformance.model.text.definition import SPACES

# The instance at the top, as opposed to instances/NAME.
TOP = ""
# The id of no event: of what is recorded as text alone.
_NOBODYS = -1
# What a mask of processors consists of: groups of eight digits, more than any kernel has
# processors for.
_HEXADECIMAL = "0123456789abcdefABCDEF,"
_MOST_GROUPS = 1024
# Bytes of a page of a buffer beside its header.
_PAGE_ROOM = 4080


@dataclass(frozen=True, slots=True)
class Record:
    """One record in a buffer: common fields and payload, without padding.

    ``id`` is that of its event when it was written, ``cpu`` the processor, None for any.  Of what
    others than user events recorded only the ``text`` is known.
    """

    id: int
    raw: bytes
    actor: str
    cpu: int | None
    text: str = ""

    @property
    def size(self) -> int:
        """Bytes of its payload."""
        return len(self.raw) - TRACE_ENTRY_SIZE


@dataclass(slots=True)
class Instance:
    """One instance (struct trace_array)."""

    records: list[Record] = field(default_factory=list)
    # What the spare buffer holds, once there is one (snapshot).
    snapshot: list[Record] | None = None
    tracing_on: bool = True
    # Whether anything is recorded on the only processor of a guest (tracing_cpumask).
    on_processor: bool = True
    # Why the content of the buffer is not known, if it is not.
    unknown: str = ""
    # Processors on which a record was reserved that will never be committed: those behind it
    # stay unseen.
    stuck: set[int] = field(default_factory=set)
    # Whether the buffer is reset with the next deletion through dynamic_events; None for unknown.
    clear_trace: bool | None = False
    # Actors whose processes are the only ones recorded, and those that are not; () for no list.
    pids: tuple[str, ...] = ()
    no_pids: tuple[str, ...] = ()
    # The serial number of the first event that is younger than the instance.
    first_event: int = 0
    # How many records were consumed on each processor since the last reset.
    consumed: dict[int | None, int] = field(default_factory=dict)
    # How many pages the buffer of a processor has, None for more than anybody fills.
    pages: int | None = None
    # Whether the oldest records make room for new ones, which are lost else, and how many were.
    overwrite: bool = True
    overrun: int = 0
    dropped: int = 0
    # What `error_log` shows; the kernel keeps the last eight.
    errors: list[str] = field(default_factory=list)
    errors_unknown: bool = False

    @property
    def records_now(self) -> bool:
        """Whether a buffer gives room to a record (ring_buffer_lock_reserve)."""
        return self.tracing_on and self.on_processor

    def set_processors(self, text: str) -> None:
        """tracing_cpumask_write(), of a machine with one processor.  Raises Errno."""
        mask = text.strip(SPACES)
        if not text or mask.strip(_HEXADECIMAL):
            raise Errno("EINVAL")
        if mask.count(",") >= _MOST_GROUPS:
            raise Errno("EOVERFLOW")
        if mask not in ("", "0", "1"):
            raise NotModelled(f"the processors {mask}")
        self.on_processor = mask == "1"

    def ignores(self, actor: str) -> bool:
        """Whether what a process writes is of no interest (trace_ignore_this_task)."""
        return actor in self.no_pids or (bool(self.pids) and actor not in self.pids)

    def record_text(self, text: str) -> None:
        """A record of somebody else than a user event."""
        if self.records_now:
            self.records.append(Record(_NOBODYS, b"", "", None, text))

    def swap(self) -> None:
        """update_max_tr(): what was recorded is in the spare buffer, and the other way round."""
        self.records, self.snapshot = self.snapshot or [], self.records

    def reserve(self, size: int) -> bool:
        """Whether there is room for a record of so many bytes (ring_buffer.c:rb_move_tail)."""
        if self.pages is None:
            return True
        fitting = _on_a_page(size)
        if any(len(each.raw) != size for each in self.records) or self.consumed:
            raise NotModelled("how records of several sizes, or after others, fill a page")
        if len(self.records) < self.pages * fitting:
            return True
        if not self.overwrite:
            self.dropped += 1
            return False
        del self.records[:fitting]
        self.overrun += fitting
        return True

    def resize(self, kilobytes: int) -> None:
        """tracing_entries_write(): so many pages, and two at least."""
        if kilobytes == 0:
            raise Errno("EINVAL")
        if self.records:
            raise NotModelled("another size for a buffer with records")
        self.pages = max(-(-kilobytes * 1024 // _PAGE_ROOM), 2)

    def consume(self, record: Record) -> None:
        """A reader takes a record out of the buffer."""
        self.records.remove(record)
        self.consumed[record.cpu] = self.consumed.get(record.cpu, 0) + 1

    def of_processor(self, cpu: int | None) -> list[Record]:
        """The records of a processor, or with None of all."""
        if cpu is not None and any(record.cpu is None for record in self.records):
            raise NotModelled("the records of one processor, and a writer that ran anywhere")
        return [record for record in self.records if cpu in (None, record.cpu)]

    def counts(self, cpu: int) -> str:
        """What per_cpu/cpuN/stats shows, without bytes and times (tracing_stats_read)."""
        return (
            f"entries: {len(self.of_processor(cpu))}\noverrun: {self.overrun}\n"
            f"commit overrun: 0\ndropped events: {self.dropped}\n"
            f"read events: {self.consumed.get(cpu, 0)}\n"
        )

    def reset(self) -> None:
        """tracing_reset_online_cpus()"""
        if self.stuck:
            raise NotModelled("clearing a buffer in which a record was never committed")
        self.records.clear()
        self.consumed.clear()
        self.overrun = self.dropped = 0
        self.unknown = ""


def _on_a_page(size: int) -> int:
    """How many records of so many bytes a page has room for.

    Raises NotModelled where that depends on the time between them, which may take eight bytes.
    """
    event = -(-size // 4) * 4 + 8
    fitting = _PAGE_ROOM // event
    if fitting != _PAGE_ROOM // (event + 8):
        raise NotModelled("a page that is full or not, as time goes")
    return fitting
