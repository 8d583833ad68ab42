"""perf events and their ring buffers."""

from __future__ import annotations

import mmap

from msgspec import Struct

from conformance import ops
from conformance.abi import perf
from conformance.client.addresses import ATTR, PAGE, READ_WRITE, STRING
from conformance.client.caller import Caller, Descriptor
from conformance.client.tracefs import ROOT, SYSTEM
from conformance.ops import Observation

IP = perf.PERF_SAMPLE_IP
RAW = perf.PERF_SAMPLE_RAW
PERIOD = perf.PERF_SAMPLE_PERIOD
TID = perf.PERF_SAMPLE_TID
REGS = perf.PERF_SAMPLE_REGS_INTR


class PerfAttr(Struct, frozen=True):
    """Members of struct perf_event_attr."""

    period: int = 1
    sample_type: int = RAW
    disabled: bool = False
    inherit: bool = False
    exclude_kernel: bool = False
    # Mask of kernel registers; non-zero needs the longer structure.
    registers: int = 0

    def packed(self, kind: int, config: int) -> bytes:
        """The packed structure."""
        flags = (
            (perf.ATTR_DISABLED if self.disabled else 0)
            | (perf.ATTR_INHERIT if self.inherit else 0)
            | (perf.ATTR_EXCLUDE_KERNEL if self.exclude_kernel else 0)
        )
        size = perf.ATTR_SIZE_WITH_REGISTERS if self.registers else perf.PERF_EVENT_ATTR.size
        attr = perf.PERF_EVENT_ATTR.pack(
            {
                "type": kind,
                "size": size,
                "config": config,
                "sample_period": self.period,
                "sample_type": self.sample_type,
                "flags": flags,
            }
        )
        behind = self.registers.to_bytes(8, "little").rjust(size - len(attr), b"\0")
        return attr + behind if self.registers else attr


# Counts only, no records.
COUNTING = PerfAttr(period=0, sample_type=0)


class Ring(Struct, frozen=True):
    """A mapped ring buffer: observation of mmap(2), address, number of pages."""

    process: Caller
    mapped: Observation
    address: int
    pages: int
    sample_type: int

    def lines(self) -> list[str]:
        """Head and tail, then the records between them (ops.decoding.perf_ring)."""
        operation = ops.ReadRing(
            self.process.actor, self.address, self.pages * PAGE, self.sample_type
        )
        return self.process.run(operation).text.splitlines()

    def records(self) -> list[str]:
        """The records only."""
        return self.lines()[1:]

    def set_tail(self, position: int) -> Observation:
        """Set data_tail: how far the reader has read, in bytes."""
        return self.process.store(self.address + perf.DATA_TAIL, position.to_bytes(8, "little"))

    def unmap(self) -> Observation:
        """munmap(2) of the whole buffer."""
        return self.process.unmap(self.address, self.pages)


class PerfEvent(Descriptor):
    """A descriptor of perf_event_open(2); ``opened`` is the observation of the call."""

    def __init__(self, process: Caller, slot: int, opened: Observation, sample_type: int) -> None:
        super().__init__(process, slot)
        self.opened = opened
        self._sample_type = sample_type

    @property
    def errno(self) -> str:
        """Name of the error of perf_event_open(2), "" on success."""
        return self.opened.errno

    @property
    def count(self) -> int:
        """The count, by read(2)."""
        return int.from_bytes(self.read().data or b"", "little")

    def read(self, count: int = 8) -> Observation:
        """read(2) of at most ``count`` bytes."""
        return self.process.run(ops.Read(self.process.actor, self.slot, count))

    def map(
        self, pages: int = 2, *, protection: int = READ_WRITE, shared: bool = True, offset: int = 0
    ) -> Ring:
        """mmap(2) of ``pages`` pages, the first of which is the control page."""
        flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        address = self.process.reserve(pages)
        actor = self.process.actor
        mapped = self.process.run(
            ops.Mmap(actor, address, pages * PAGE, protection, flags, self.slot, offset)
        )
        return Ring(self.process, mapped, address, pages, self._sample_type)

    def enable(self) -> Observation:
        """PERF_EVENT_IOC_ENABLE."""
        return self.ioctl(perf.PERF_EVENT_IOC_ENABLE)

    def disable(self) -> Observation:
        """PERF_EVENT_IOC_DISABLE."""
        return self.ioctl(perf.PERF_EVENT_IOC_DISABLE)

    def reset(self) -> Observation:
        """PERF_EVENT_IOC_RESET."""
        return self.ioctl(perf.PERF_EVENT_IOC_RESET)

    def set_filter(self, text: str) -> Observation:
        """PERF_EVENT_IOC_SET_FILTER."""
        self.process.queue(ops.Store(self.process.actor, STRING, text.encode() + b"\0"))
        return self.ioctl(perf.PERF_EVENT_IOC_SET_FILTER, STRING)

    def set_program(self, slot: int) -> Observation:
        """PERF_EVENT_IOC_SET_BPF with the program in ``slot``."""
        request = perf.PERF_EVENT_IOC_SET_BPF
        return self.process.run(ops.IoctlDescriptor(self.process.actor, self.slot, request, slot))


def id_path(name: str, system: str = SYSTEM) -> str:
    """Path of the `id` of an event."""
    return f"{ROOT}/events/{system}/{name}/id"


def store_id(process: Caller, name: str, attr: PerfAttr, system: str = SYSTEM) -> Observation:
    """Store a perf_event_attr for an event; return the observation of reading its id."""
    return process.run(*_storing_id(process.actor, name, attr, system))


def _storing_id(actor: str, name: str, attr: PerfAttr, system: str) -> tuple[ops.Operation, ...]:
    config = ATTR + perf.PERF_EVENT_ATTR.member("config").offset
    return (
        ops.Store(actor, ATTR, attr.packed(perf.PERF_TYPE_TRACEPOINT, 0)),
        ops.StoreNumber(actor, config, id_path(name, system)),
    )


def open_stored(process: Caller, attr: PerfAttr, *, pid: int = 0, cpu: int = -1) -> PerfEvent:
    """perf_event_open(2) with the stored perf_event_attr."""
    slot = process.free_slot()
    opened = process.run(ops.PerfEventOpen(process.actor, slot, ATTR, pid, cpu))
    return PerfEvent(process, slot, opened, attr.sample_type)


def open_perf(
    process: Caller,
    name: str,
    attr: PerfAttr = PerfAttr(),
    *,
    system: str = SYSTEM,
    pid: int = 0,
    cpu: int = -1,
) -> PerfEvent:
    """perf_event_open(2) of an event, for the calling process or for a CPU."""
    process.queue(*_storing_id(process.actor, name, attr, system))
    return open_stored(process, attr, pid=pid, cpu=cpu)


def open_raw(process: Caller, kind: int, config: int, attr: PerfAttr = COUNTING) -> PerfEvent:
    """perf_event_open(2) with any type and config."""
    process.queue(ops.Store(process.actor, ATTR, attr.packed(kind, config)))
    return open_stored(process, attr)
