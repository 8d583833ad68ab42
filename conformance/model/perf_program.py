"""BPF programs attached to events of perf: PERF_EVENT_IOC_SET_BPF, and running them.

Source: kernel/events/core.c:perf_event_set_bpf_prog; kernel/trace/bpf_trace.c:
perf_event_attach_bpf_prog, trace_call_bpf; what programs are given is in bpf_context.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.abi.bpf_layouts import ProgramType
from conformance.model import bpf_context, memory
from conformance.model.bpf_context import Segment
from conformance.model.bpf_programs import Program
from conformance.model.errors import Errno, NotModelled
from conformance.model.events import Event
from conformance.model.perf_event import PerfEvent
from conformance.model.world import Process, World

# BPF_TRACE_MAX_PROGS
_MOST_PROGRAMS = 64


def attach(world: World, event: PerfEvent, program: object) -> None:
    """PERF_EVENT_IOC_SET_BPF of what a descriptor is open for.  Raises Errno."""
    if not isinstance(program, Program):
        # bpf_prog_get()
        raise Errno("EINVAL")
    if event.source is None:
        raise NotModelled("a program on an event that is no tracepoint")
    if program.kind is not ProgramType.TRACEPOINT:
        raise Errno("EINVAL")
    if program.context_size > _fields_end(world, world.event(event.source)):
        raise Errno("EACCES")
    if event.program is not None:
        raise Errno("EEXIST")
    others = _attached(world, event.source)
    if len(others) >= _MOST_PROGRAMS:
        raise Errno("E2BIG")
    if program in others:
        raise Errno("EEXIST")
    event.program = program


def _fields_end(world: World, event: Event) -> int:
    """trace_event_get_offsets(): where the last field ends."""
    if event.fields:
        return event.fields[-1].offset + event.fields[-1].size
    # The head of the empty list is taken for a field: what stands in the place of its offset
    # and size are, as long as there is a page, the event's index and flags.
    if not world.profile.has("status_page"):
        raise NotModelled("a program on an event without fields")
    return event.index + event.bpf_iter


def _attached(world: World, source: int) -> list[Program]:
    """The programs of all events of perf that listen to a user event."""
    events = [each for each in world.perf_events if each.source == source]
    return [each.program for each in events if each.program is not None]


def run(
    world: World,
    process: Process,
    event: Event,
    segments: Sequence[Segment],
    consumed: int,
    payload: bytes,
) -> None:
    """Run the programs of a user event on a write; what they answer is ignored.

    ``consumed`` bytes of the segments were the write index, ``payload`` is the rest.
    """
    if not world.profile.has("bpf_programs_run"):
        return
    context = bpf_context.context(event, segments, consumed, payload)

    def read_memory(address: int, length: int) -> bytes:
        """bpf_probe_read(): the writer's memory below the kernel's half, else the kernel's."""
        if memory.is_user_range(address, length):
            return process.memory.read(address, length)
        return context.read(address, length)

    for program in _attached(world, event.serial):
        program.run(context.raw, read_memory)
