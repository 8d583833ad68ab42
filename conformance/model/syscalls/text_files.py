"""Files that are read or written whole, and their attributes."""

from __future__ import annotations

from conformance import ops
from conformance.model.answers import Answer
from conformance.model.errors import NotModelled
from conformance.model.state.world import World
from conformance.model.syscalls import entry
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracefs import enabling, event_paths, files, format_file
from conformance.ops import View
from conformance.ops.allocations import RecordAllocations, Unfreed

# What the model as an executor reads from an `id`.
_SOME_ID = b"65000\n"


def read_file(world: World, operation: ops.ReadFile) -> Answer:
    """The whole text of a file."""
    text = files.read(world, world.process(operation.actor), operation.path)
    if event_paths.is_first_id(world, operation.path):
        return Answer(None, example=_SOME_ID)
    if text is None:
        return Answer(None, example=files.example(world, operation.path))
    if operation.view is View.EXACT and event_paths.shows_id(world, operation.path):
        raise NotModelled(f"the ID in {operation.path}: read it with a view without it")
    compared = operation.compared(text)
    if operation.view is View.ARRAYS and format_file.shows_any_length(world.profile):
        any_length = format_file.with_some_length(compared.decode("latin-1"))
        if any_length is not None:
            return Answer(None, example=any_length.encode("latin-1"))
    return Answer(None, "", compared)


def _write_file(world: World, operation: ops.WriteFile) -> Answer:
    process = world.process(operation.actor)
    return Answer(files.write(world, process, operation.path, operation.data, operation.flags))


def _write_pid(world: World, operation: ops.WritePid) -> Answer:
    process = world.process(operation.actor)
    enabling.write_pid(world, process, operation.path, operation.flags)
    return Answer(None)


def _stat(world: World, operation: ops.Stat) -> Answer:
    return Answer(entry.attributes(world, operation.path).mode)


def _record_allocations(world: World, operation: RecordAllocations) -> Answer:
    world.process(operation.actor)
    return Answer(1)


def _unfreed(world: World, operation: Unfreed) -> Answer:
    world.process(operation.actor)
    return Answer(0, "", b"") if operation.last else Answer(None)


def _kernel_memory(world: World, operation: ops.KernelMemory) -> Answer:
    world.process(operation.actor)
    return Answer(None)


def _store_number(world: World, operation: ops.StoreNumber) -> Answer:
    process = world.process(operation.actor)
    raw = files.number(world, process, operation.path).to_bytes(8, "little")
    process.memory.write(operation.address, raw)
    return Answer(len(raw))


HANDLERS: Handlers = {
    ops.ReadFile: read_file,
    ops.WriteFile: _write_file,
    ops.WritePid: _write_pid,
    ops.Stat: _stat,
    ops.StoreNumber: _store_number,
    ops.KernelMemory: _kernel_memory,
    RecordAllocations: _record_allocations,
    Unfreed: _unfreed,
}
