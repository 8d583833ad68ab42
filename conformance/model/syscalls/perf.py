"""perf_event_open(2), and ioctl(2), read(2) and mmap(2) of its descriptor.

Source: kernel/events/core.c, functions named where a rule is applied;
kernel/trace/trace_event_perf.c:perf_trace_init.
"""

from __future__ import annotations

import mmap
import os

from conformance import ops
from conformance.abi import perf
from conformance.abi.bpf import ProgramType
from conformance.model.answers import Answer
from conformance.model.bpf.programs import Program
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory.pages import PAGE_SIZE, Entry, pages_of
from conformance.model.state.namespaces import CONFIDENTIALITY
from conformance.model.state.perf_event import ANY_CPU, PerfEvent, Ring, perf_event_of
from conformance.model.state.probes import Kprobe
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.world import World
from conformance.model.syscalls.handlers import Handlers
from conformance.model.text import filter_parser
from conformance.ops.decoding import perf_ring

_ATTR = perf.PERF_EVENT_ATTR
_FLAGS = perf.ATTR_DISABLED | perf.ATTR_INHERIT | perf.ATTR_EXCLUDE_KERNEL
_SAMPLE_TYPES = (
    perf.PERF_SAMPLE_IP
    | perf.PERF_SAMPLE_TID
    | perf.PERF_SAMPLE_PERIOD
    | perf.PERF_SAMPLE_RAW
    | perf.PERF_SAMPLE_REGS_INTR
)
# The range of event ids; only those of user events are known.
_KERNEL_IDS = 1 << 16
_COUNT_SIZE = 8
# PERF_REG_X86_AX
_FIRST_REGISTER = 1
# CONFIG_NR_CPUS is never larger.
_MAX_CPUS = 8192
# Processors of the largest guest.
_KNOWN_CPUS = 2
_PERIOD_SIGN = 1 << 63
# strndup_user() of a filter.
_MAX_FILTER = PAGE_SIZE


def open_event(world: World, process: Process, operation: ops.PerfEventOpen) -> OpenFile:
    """perf_event_open(2), for the caller or for a processor."""
    attr = _attr(process, operation.address)
    flags, sample_type = attr["flags"], attr["sample_type"]
    if not process.credentials.perfmon and not flags & perf.ATTR_EXCLUDE_KERNEL:
        # perf_allow_kernel(), with kernel.perf_event_paranoid 2.
        raise Errno("EACCES")
    if attr["sample_period"] & _PERIOD_SIGN:
        raise Errno("EINVAL")
    if sample_type & perf.PERF_SAMPLE_REGS_INTR and world.lockdown >= CONFIDENTIALITY:
        raise Errno("EPERM")
    if operation.pid not in (0, -1):
        raise NotModelled(f"perf_event_open for process {operation.pid}")
    nowhere = operation.pid == -1 and operation.cpu == ANY_CPU
    if nowhere or not ANY_CPU <= operation.cpu < _MAX_CPUS:
        # perf_event_alloc()
        raise Errno("EINVAL")
    if operation.cpu >= _KNOWN_CPUS:
        raise NotModelled(f"whether there is a processor {operation.cpu}")
    source, kprobe = _source(world, attr)
    raw = bool(sample_type & perf.PERF_SAMPLE_RAW)
    if raw and kprobe is not None:
        raise NotModelled("PERF_SAMPLE_RAW of a kprobe")
    if raw and source is not None and not process.credentials.perfmon:
        # perf_allow_tracepoint()
        raise Errno("EPERM")
    if operation.pid == -1 and not process.credentials.perfmon:
        # find_get_context(): perf_allow_cpu().
        raise Errno("EACCES")
    period = attr["sample_period"]
    event = PerfEvent(
        source=source,
        kprobe=kprobe,
        tasks=[process] if operation.pid == 0 else [],
        cpu=operation.cpu,
        period=period,
        sample_type=sample_type,
        enabled=not flags & perf.ATTR_DISABLED,
        inherit=bool(flags & perf.ATTR_INHERIT),
        exclude_kernel=bool(flags & perf.ATTR_EXCLUDE_KERNEL),
        raw_unasked=not world.profile.has("raw_data_if_asked"),
        program_at_sample=not world.profile.fixed("perf-program-runs-twice"),
        # perf_trace_add() sets the first period.
        until_sample=period if world.profile.has("first_period_counted") else None,
    )
    world.open_perf(event)
    return OpenFile("perf_event", os.O_RDWR, object=event)


def _attr(process: Process, address: int) -> dict[str, int]:
    """perf_copy_attr(), for attributes that the model knows."""
    size = int.from_bytes(process.memory.read(address + _ATTR.member("size").offset, 4), "little")
    if size not in (0, _ATTR.size, perf.ATTR_SIZE_WITH_REGISTERS):
        raise NotModelled(f"a perf_event_attr of {size} bytes")
    attr = _ATTR.unpack(process.memory.read(address, _ATTR.size))
    if (attr["flags"] | attr["sample_type"]) & perf.ATTR_RESERVED:
        # Comes before any permission check.
        raise Errno("EINVAL")
    if attr["flags"] & ~_FLAGS or attr["sample_type"] & ~_SAMPLE_TYPES or attr["read_format"]:
        raise NotModelled("other members of perf_event_attr")
    if attr["sample_type"] & perf.PERF_SAMPLE_REGS_INTR:
        _check_registers(process, address, size)
    return attr


def _check_registers(process: Process, address: int, size: int) -> None:
    """perf_reg_validate(): the mask must not be empty.  Raises Errno("EINVAL")."""
    mask = 0
    if size > perf.ATTR_REGISTERS:
        mask = int.from_bytes(process.memory.read(address + perf.ATTR_REGISTERS, 8), "little")
    if not mask:
        raise Errno("EINVAL")
    if mask != _FIRST_REGISTER:
        raise NotModelled(f"the registers {mask:#x}")


def _source(world: World, attr: dict[str, int]) -> tuple[int | None, Kprobe | None]:
    """The user event or kprobe of an id, neither for a dummy.  Raises Errno("EINVAL")."""
    kind, config = attr["type"], attr["config"]
    if (kind, config) == (perf.PERF_TYPE_SOFTWARE, perf.PERF_COUNT_SW_DUMMY):
        return None, None
    if kind != perf.PERF_TYPE_TRACEPOINT:
        raise NotModelled(f"perf type {kind}")
    probe = next((probe for probe in world.kprobes.values() if probe.id == config), None)
    if probe is not None:
        return None, probe
    event = world.table.with_id(config)
    if event is not None:
        return event.serial, None
    if config < _KERNEL_IDS:
        raise NotModelled(f"the kernel event with the id {config}")
    raise Errno("EINVAL")


def ioctl(world: World, process: Process, event: PerfEvent, request: int, argument: int) -> int:
    """_perf_ioctl()."""
    match request:
        case perf.PERF_EVENT_IOC_SET_FILTER:
            _set_filter(world, process, event, argument)
        case perf.PERF_EVENT_IOC_ENABLE | perf.PERF_EVENT_IOC_DISABLE if argument == 0:
            event.enabled = request == perf.PERF_EVENT_IOC_ENABLE
        case perf.PERF_EVENT_IOC_RESET if argument == 0 and not event.inherit:
            event.count = 0
        case _ if request & 0xFF00 == perf.PERF_EVENT_IOC_ENABLE:
            raise NotModelled(f"ioctl {request:#x} of perf")
        case _:
            raise Errno("ENOTTY")
    return 0


def set_program(world: World, process: Process, event: PerfEvent, slot: int) -> int:
    """PERF_EVENT_IOC_SET_BPF: __perf_event_set_bpf_prog(), perf_event_attach_bpf_prog()."""
    program = process.file(slot).object
    if not isinstance(program, Program):
        raise Errno("EINVAL")
    types = {(True, False): ProgramType.TRACEPOINT, (False, True): ProgramType.KPROBE}
    place = (event.source is not None, event.kprobe is not None)
    # Other events take program types that the model does not load.
    if program.kind is not types.get(place):
        raise Errno("EINVAL")
    if event.source is not None:
        runs = world.profile.has("bpf_programs_run")
        if not runs and world.profile.fixed("bpf-never-runs"):
            raise Errno("EINVAL")
        _check_context(world, program, event.source)
    attached = [
        each
        for each in world.perf_events
        if (each.source, each.kprobe) == (event.source, event.kprobe)
    ]
    if event.program is not None or any(each.program is program for each in attached):
        raise Errno("EEXIST")
    event.program = program
    return 0


def _check_context(world: World, program: Program, source: int) -> None:
    """trace_event_get_offsets(): loads of a program must lie within the fields."""
    fields = world.event(source).fields
    if not fields and program.context_size:
        raise NotModelled("a program that loads from the context of an event without fields")
    if fields and program.context_size > fields[-1].offset + fields[-1].size:
        raise Errno("EACCES")


def _set_filter(world: World, process: Process, event: PerfEvent, address: int) -> None:
    """perf_event_set_filter(), ftrace_profile_set_filter()."""
    reach = process.memory.readable(address, _MAX_FILTER)
    text, end, _ = process.memory.read(address, reach).partition(b"\0")
    if not end:
        raise Errno("EFAULT" if reach < _MAX_FILTER else "EINVAL")
    if event.kprobe is not None:
        raise NotModelled("a filter of a kprobe")
    if event.source is None:
        raise Errno("EINVAL")
    if event.filter is not None:
        raise Errno("EEXIST")
    source = world.event(event.source)
    event.filter = filter_parser.parse(text.decode("latin-1"), source.fields, world.profile)


def read(event: PerfEvent, count: int) -> bytes:
    """perf_read_one() without PERF_FORMAT_*: the count."""
    if count < _COUNT_SIZE:
        raise Errno("ENOSPC")
    return event.count.to_bytes(_COUNT_SIZE, "little")


def map_ring(process: Process, file: OpenFile, operation: ops.Mmap) -> None:
    """perf_mmap(): the control page, and 2^n data pages or none."""
    event = perf_event_of(file)
    assert event is not None
    numbers = pages_of(operation.address, operation.length)
    records = len(numbers) - 1
    # All children would write to one ring, so perf_mmap() refuses it.
    refused = event.cpu == ANY_CPU and event.inherit
    if refused or not operation.flags & mmap.MAP_SHARED or operation.offset:
        raise Errno("EINVAL")
    if records & (records - 1):
        raise Errno("EINVAL")
    if event.ring is None:
        overwrites = not operation.protection & mmap.PROT_WRITE
        event.ring = Ring.fresh(len(numbers), overwrites=overwrites)
    elif len(event.ring.pages) != len(numbers):
        raise Errno("EINVAL")
    entry = Entry(operation.protection, shared=True, owner=file)
    # perf_mmap_fault(): the pages appear as they are used.
    process.memory.map_frames(numbers, event.ring.pages, entry, readable=False)


def _perf_event_open(world: World, process: Process, operation: ops.PerfEventOpen) -> Answer:
    process.slots[operation.slot] = open_event(world, process, operation)
    return Answer(0)


def _read_ring(world: World, process: Process, operation: ops.ReadRing) -> Answer:
    space = process.memory
    mapping = space.read(operation.address, operation.length)
    text = perf_ring.describe(mapping, operation.sample_type)
    return Answer(operation.length, "", text.encode())


HANDLERS: Handlers = {ops.PerfEventOpen: _perf_event_open, ops.ReadRing: _read_ring}
