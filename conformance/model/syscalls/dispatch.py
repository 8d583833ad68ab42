"""The rules of all operations in one table."""

from __future__ import annotations

from errno import errorcode

from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled, RawReturn
from conformance.model.handlers import Handlers
from conformance.model.state.world import World
from conformance.model.syscalls import (
    bpf,
    credentials,
    entry,
    file_attributes,
    file_io,
    io_uring,
    lifecycle,
    mapping,
    mounts,
    perf,
    programs,
    races,
    sockets,
    text_files,
)
from conformance.model.tracefs import directories, enabling, trace_pipe
from conformance.model.tracing import instances
from conformance.ops import Operation

HANDLERS: Handlers = {
    kind: handler
    for module in (
        bpf,
        credentials,
        directories,
        enabling,
        file_attributes,
        file_io,
        instances,
        io_uring,
        lifecycle,
        mapping,
        mounts,
        perf,
        programs,
        races,
        sockets,
        text_files,
        trace_pipe,
    )
    for kind, handler in module.HANDLERS.items()
}


def perform(world: World, operation: Operation, handlers: Handlers) -> Answer:
    """Apply an operation to one state and return that state's answer.

    Raises NotModelled for what the model does not know.
    """
    handler = handlers.get(type(operation))
    if handler is None:
        raise NotModelled(f"operation {type(operation).__name__}")
    lifecycle.check_awake(world, operation)
    try:
        return handler(world, entry.enter(world, operation))
    except Errno as error:
        return Answer(-1, error.name, reason=error.reason)
    except RawReturn as returned:
        return _raw_answer(returned.value)


def _raw_answer(value: int) -> Answer:
    """How the C library shows a raw return value: -1 to -4095 are error numbers."""
    if -4096 < value < 0:
        return Answer(-1, errorcode.get(-value, f"errno {-value}"))
    return Answer(value)
