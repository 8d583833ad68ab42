"""Kprobes created through kprobe_events on user_events_write().

Cases call ``user_events_write(file, buffer, count, position)`` with write(2).
Source: trace_events_user.c; trace_kprobe.c:kprobe_perf_func.
"""

from __future__ import annotations

import re

from conformance.model.bpf.access import PT_REGS_SIZE
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory.pages import KERNEL_HALF
from conformance.model.state.namespaces import TRACEFS
from conformance.model.state.perf_event import PerfEvent
from conformance.model.state.probes import GROUP, Kprobe
from conformance.model.state.process import Process
from conformance.model.state.world import World
from conformance.model.tracing import instances

KPROBE_EVENTS = f"{TRACEFS}/kprobe_events"
FUNCTION = "user_events_write"
# Stand-ins for ids, above those of user events.
_FIRST_ID = 1 << 40
_CREATE = re.compile(rf"p:{GROUP}/(\w+) {FUNCTION}\n")
_DELETE = re.compile(rf"-:{GROUP}/(\w+)\n")
_FILE = re.compile(rf"{TRACEFS}/events/{GROUP}/(\w+)/id")

# struct pt_regs of x86-64: byte offsets of arguments 2 to 4.
_RSI, _RDX, _RCX = 104, 96, 88
# struct kprobe_trace_entry_head; the model does not know the address in it.
_RECORD = bytes(16)
# A stand-in for the address of the position in vfs_write(), which is 0 for a write(2).
_POSITION = 0xFFFF_C900_0000_0000
_POSITION_SIZE = 8


def command(world: World, text: str) -> None:
    """trace_kprobe.c:probes_write(): one command that creates or deletes a kprobe."""
    if created := _CREATE.fullmatch(text):
        if created[1] in world.kprobes:
            raise NotModelled("a second kprobe with the same name")
        world.kprobes_created += 1
        world.kprobes[created[1]] = Kprobe(created[1], _FIRST_ID + world.kprobes_created)
    elif removed := _DELETE.fullmatch(text):
        instances.reset_after_deletion(world)
        probe = world.kprobes.get(removed[1])
        if probe is None:
            raise Errno("ENOENT")
        if any(event.kprobe is probe for event in world.perf_events):
            raise Errno("EBUSY")
        del world.kprobes[probe.name]
    else:
        raise NotModelled(f"the kprobe command {text!r}")


def number(world: World, path: str) -> int | None:
    """The stand-in for a kprobe's `id`, None for other paths."""
    found = _FILE.fullmatch(path)
    if found is None:
        return None
    probe = world.kprobes.get(found[1])
    if probe is None:
        raise Errno("ENOENT")
    return probe.id


def hit(world: World, process: Process, buffer: int, count: int) -> None:
    """kprobe_perf_func(): run the programs; perf counts unless one returns 0."""
    for probe in world.kprobes.values():
        listeners = [event for event in world.perf_events if event.kprobe is probe]
        answers = [_run(process, event, buffer, count) for event in listeners if event.program]
        # trace_call_bpf() runs all programs, whichever task their perf event follows.
        if not all(answers):
            continue
        for event in listeners:
            if event.follows(process):
                event.deliver(_RECORD)


def _run(process: Process, event: PerfEvent, buffer: int, count: int) -> int:
    assert event.program is not None
    registers = {_RSI: buffer, _RDX: count, _RCX: _POSITION}
    context = bytearray(PT_REGS_SIZE)
    known: set[int] = set()
    for offset, value in registers.items():
        context[offset : offset + 8] = value.to_bytes(8, "little")
        known.update(range(offset, offset + 8))

    def read_memory(address: int, length: int) -> bytes:
        """copy_from_kernel_nofault(); user addresses are read from the caller."""
        if address >= _POSITION and address + length <= _POSITION + _POSITION_SIZE:
            return bytes(length)
        if address >= KERNEL_HALF:
            raise NotModelled(f"kernel memory at {address:#x}")
        return process.memory.read_present(address, length)

    return event.program.run(bytes(context), read_memory, known)
