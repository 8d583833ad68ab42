"""Files that are read or written whole, and their attributes."""

from __future__ import annotations

from conformance import ops
from conformance.model.answers import Answer
from conformance.model.errors import NotModelled
from conformance.model.state.process import Process
from conformance.model.state.world import World
from conformance.model.syscalls import entry
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracefs import enabling, event_paths, files, format_file
from conformance.ops import View
from conformance.ops.allocations import RecordAllocations, Unfreed

# What the model as an executor reads from an `id`.
_SOME_ID = b"65000\n"


def read_file(world: World, process: Process, operation: ops.ReadFile) -> Answer:
    """The whole text of a file."""
    text = files.read(world, process, operation.path)
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


def _write_file(world: World, process: Process, operation: ops.WriteFile) -> Answer:
    return Answer(files.write(world, process, operation.path, operation.data, operation.flags))


def _write_pid(world: World, process: Process, operation: ops.WritePid) -> Answer:
    enabling.write_pid(world, process, operation.path, operation.flags)
    return Answer(None)


def _stat(world: World, process: Process, operation: ops.Stat) -> Answer:
    return Answer(entry.attributes(world, operation.path).mode)


def _record_allocations(world: World, process: Process, operation: RecordAllocations) -> Answer:
    return Answer(1)


def _unfreed(world: World, process: Process, operation: Unfreed) -> Answer:
    return Answer(0, "", b"") if operation.last else Answer(None)


def _kernel_memory(world: World, process: Process, operation: ops.KernelMemory) -> Answer:
    return Answer(None)


def _store_number(world: World, process: Process, operation: ops.StoreNumber) -> Answer:
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
