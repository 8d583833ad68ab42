"""A tracefs instance: its ring buffer, switches and error log.

Source: trace.c and ring_buffer.c, functions named where a rule is applied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from conformance.abi.grammar import TRACE_ENTRY_SIZE
from conformance.abi.profile import Profile
from conformance.model.errors import Errno, NotModelled
from conformance.model.text.definition import SPACES

# The top instance, as opposed to instances/NAME.
TOP = ""
PIDS, NO_PIDS = "set_event_pid", "set_event_notrace_pid"
# Stands for the id of a record that is not of a user event.
_NO_EVENT = -1
# Characters of a cpumask, and more groups of it than any kernel has processors for.
_HEXADECIMAL = "0123456789abcdefABCDEF,"
_MAX_GROUPS = 1024
_END_OF_MASK = re.compile("[\n\0]")
# BUF_PAGE_SIZE: room for events in a sub-buffer.
_PAGE_ROOM = 4080


@dataclass(frozen=True, slots=True)
class Record:
    """A record: common fields and payload, without padding.

    ``id`` is the id of the event at the time of the write, ``cpu`` the processor, None for any.  Of
    records that are not of user events only the ``text`` is known.  A ``stale`` record is older
    than the last reset of `trace`, which skips it if a snapshot restores it (tracing_iter_reset).
    """

    id: int
    raw: bytes
    tid: str
    cpu: int | None
    text: str = ""
    stale: bool = False

    @property
    def size(self) -> int:
        """Bytes of the payload."""
        return len(self.raw) - TRACE_ENTRY_SIZE


@dataclass(slots=True)
class Instance:
    """struct trace_array."""

    records: list[Record] = field(default_factory=list)
    # The snapshot buffer, None until it is allocated.
    snapshot: list[Record] | None = None
    tracing_on: bool = True
    # RB_WARN_ON() has disabled the buffer.
    disabled: bool = False
    # Whether tracing_cpumask includes the only processor of the guest.
    cpu_traced: bool = True
    # Why the content of the buffer, or of the snapshot buffer, is unknown; empty if it is known.
    unknown_because: str = ""
    snapshot_unknown_because: str = ""
    # Processors with a record that was reserved and never committed; later records stay invisible.
    stuck_cpus: set[int] = field(default_factory=set)
    # How many records are invisible; the kernel counts them as entries (rb_commit).
    invisible: int = 0
    # The thread id of the write that is recorded at present.
    writer: str = ""
    # Whether the next deletion through dynamic_events resets the buffer; None if unknown.
    clear_trace: bool | None = False
    # Thread ids in set_event_pid and in set_event_notrace_pid.
    pid_lists: dict[str, tuple[str, ...]] = field(default_factory=lambda: {PIDS: (), NO_PIDS: ()})
    # The serial of the first event created after the instance.
    first_event: int = 0
    # Records consumed by processor since the last reset.
    consumed: dict[int | None, int] = field(default_factory=dict)
    # Sub-buffers per processor, None if larger than any case fills.
    pages: int | None = None
    # The option `overwrite`, and how many records were overwritten or dropped.
    overwrite: bool = True
    overrun: int = 0
    dropped: int = 0
    # The content of error_log, of which the kernel keeps the last eight entries.
    error_log: list[str] = field(default_factory=list)
    error_log_unknown: bool = False

    @property
    def is_recording(self) -> bool:
        """Whether the buffer accepts records (ring_buffer_lock_reserve)."""
        return self.tracing_on and self.cpu_traced and not self.disabled

    def set_cpumask(self, text: str, profile: Profile) -> None:
        """tracing_cpumask_write() on a machine with one processor.  Raises Errno."""
        mask = _END_OF_MASK.split(text)[0].strip(SPACES)
        if (not text and profile.has("empty_cpumask_refused")) or mask.strip(_HEXADECIMAL):
            raise Errno("EINVAL")
        if mask.count(",") >= _MAX_GROUPS:
            raise Errno("EOVERFLOW")
        if mask not in ("", "0", "1"):
            raise NotModelled(f"the processors {mask}")
        self.cpu_traced = mask == "1"

    def ignores(self, tid: str) -> bool:
        """Whether the pid lists exclude a process (trace_ignore_this_task)."""
        pids, no_pids = self.pid_lists[PIDS], self.pid_lists[NO_PIDS]
        return tid in no_pids or (bool(pids) and tid not in pids)

    def append_text(self, text: str) -> None:
        """Append a record that is not of a user event."""
        if self.is_recording:
            self.records.append(Record(_NO_EVENT, b"", self.writer, None, text))

    def take_snapshot(self) -> None:
        """update_max_tr(): swap the buffer with the snapshot buffer."""
        if self.overrun or self.dropped or self.consumed or self.disabled or self.stuck_cpus:
            raise NotModelled("the counters of a buffer that becomes the snapshot")
        self.records, self.snapshot = self.snapshot or [], self.records
        unknown = self.unknown_because
        self.unknown_because, self.snapshot_unknown_because = self.snapshot_unknown_because, unknown

    def clear_snapshot(self) -> None:
        """Clear the snapshot buffer if there is one."""
        if self.snapshot is not None:
            self.snapshot.clear()
        self.snapshot_unknown_because = ""

    def reserve(self, size: int) -> bool:
        """Make room for a record; False if there is none (ring_buffer.c:rb_move_tail)."""
        if self.pages is None:
            return True
        fitting = _records_per_page(size)
        if any(len(each.raw) != size for each in self.records) or self.consumed:
            raise NotModelled("how records of several sizes, or after consumed ones, fill a page")
        if len(self.records) < self.pages * fitting:
            return True
        if not self.overwrite:
            self.dropped += 1
            return False
        del self.records[:fitting]
        self.overrun += fitting
        return True

    def resize(self, kilobytes: int) -> None:
        """tracing_entries_write(): at least two pages."""
        if kilobytes == 0:
            raise Errno("EINVAL")
        if self.records:
            raise NotModelled("resizing a buffer with records")
        self.pages = max(-(-kilobytes * 1024 // _PAGE_ROOM), 2)

    def consume(self, record: Record) -> None:
        """Remove a record from the buffer, as a consuming read does."""
        self.records.remove(record)
        self.consumed[record.cpu] = self.consumed.get(record.cpu, 0) + 1

    def records_of(self, cpu: int | None) -> list[Record]:
        """The records of a processor, or of all with None."""
        if cpu is not None and any(record.cpu is None for record in self.records):
            raise NotModelled("the records of one processor, and a writer on any")
        return [record for record in self.records if cpu in (None, record.cpu)]

    def stats_text(self, cpu: int) -> str:
        """The text of per_cpu/cpuN/stats, without bytes and times (tracing_stats_read)."""
        return (
            f"entries: {len(self.records_of(cpu))}\noverrun: {self.overrun}\n"
            f"commit overrun: 0\ndropped events: {self.dropped}\n"
            f"read events: {self.consumed.get(cpu, 0)}\n"
        )

    def reset(self) -> None:
        """tracing_reset_online_cpus()"""
        if self.stuck_cpus:
            raise NotModelled("clearing a buffer in which a record was never committed")
        self.records.clear()
        if self.snapshot:
            self.snapshot = [replace(each, stale=True) for each in self.snapshot]
        self.consumed.clear()
        self.overrun = self.dropped = 0
        self.unknown_because = ""


def _records_per_page(size: int) -> int:
    """Records of a size that fit on a page.

    Raises NotModelled if that depends on time extends, which take eight bytes each.
    """
    event = -(-size // 4) * 4 + 8
    fitting = _PAGE_ROOM // event
    if fitting != _PAGE_ROOM // (event + 8):
        raise NotModelled("a page that is full or not, depending on time extends")
    return fitting
