"""The rules of all operations in one table, and those that a generation handles differently."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.abi.profile import Generation
from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled, RawReturn
from conformance.model.state.world import World
from conformance.model.syscalls import (
    bpf,
    credentials,
    directories,
    entry,
    file_attributes,
    file_io,
    lifecycle,
    mapping,
    mounts,
    perf,
    programs,
    races,
    rfc_v1,
    sockets,
    text_files,
    trace_pipe,
)
from conformance.model.syscalls.handlers import Handlers
from conformance.ops import Operation, error_name

HANDLERS: Handlers = {
    kind: handler
    for module in (
        bpf,
        credentials,
        directories,
        file_attributes,
        file_io,
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


_HISTORICAL: Mapping[Generation, Handlers] = {
    Generation.RFC_V1: {**HANDLERS, **rfc_v1.HANDLERS},
}


def perform(world: World, operation: Operation) -> Answer:
    """Apply an operation to one state and return that state's answer.

    Raises NotModelled for what the model does not know.
    """
    handlers = _HISTORICAL.get(world.profile.generation, HANDLERS)
    handler = handlers.get(type(operation))
    if handler is None:
        raise NotModelled(f"operation {type(operation).__name__}")
    process = lifecycle.performer(world, operation)
    try:
        return handler(world, process, entry.enter(world, process, operation))
    except Errno as error:
        return Answer(-1, error.name, reason=error.reason)
    except RawReturn as returned:
        return _raw_answer(returned.value)


def _raw_answer(value: int) -> Answer:
    """How the C library shows a raw return value: -1 to -4095 are error numbers."""
    if -4096 < value < 0:
        return Answer(-1, error_name(-value))
    return Answer(value)
