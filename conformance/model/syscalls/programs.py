"""Programs that use events: what they attach to an event, as one perf event or in ftrace.

What a program prints is not modelled, nor which records it gets: the case states both.
"""

from __future__ import annotations

import os

from conformance.model.answers import Answer
from conformance.model.errors import NotModelled
from conformance.model.state.events import Event
from conformance.model.state.perf_event import PerfEvent
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.trace_instance import TOP
from conformance.model.state.world import World
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracing import event_files
from conformance.ops import RunProgram, Tracer

# The slot of the actor that holds the perf event of a program it started.
_SLOT = 2000


def run_program(world: World, process: Process, operation: RunProgram) -> Answer:
    """Attach and detach when the line ends."""
    if process.enablers:
        raise NotModelled("a program of a process with enablers: its child has them until execve")
    if operation.attach:
        _attach(world, process, operation)
    if operation.detach:
        _detach(world, process, operation)
    return Answer(operation.status, "", operation.prints.encode())


def _attach(world: World, process: Process, operation: RunProgram) -> None:
    event = _event(world, operation)
    if Tracer(operation.attach) is Tracer.FTRACE:
        event_files.enable(world, event, TOP, on=True)
        return
    perf = PerfEvent(event.serial)
    world.open_perf(perf)
    process.slots[_SLOT] = OpenFile("perf_event", os.O_RDWR, object=perf)


def _detach(world: World, process: Process, operation: RunProgram) -> None:
    if Tracer(operation.detach) is Tracer.FTRACE:
        event_files.enable(world, _event(world, operation), TOP, on=False)
        # trace-cmd reads the records, and empties the buffer before and after.
        world.top.records.clear()
        return
    world.close(process.slots.pop(_SLOT))


def _event(world: World, operation: RunProgram) -> Event:
    return world.table.named(operation.event)[0]


HANDLERS: Handlers = {RunProgram: run_program}
