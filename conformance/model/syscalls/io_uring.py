"""Writes through io_uring.

Source: io_uring/rw.c:io_write, io_rw_init_file, io_kiocb_update_pos; lib/iov_iter.c.
"""

from __future__ import annotations

from dataclasses import replace

from conformance import ops
from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.process import Process
from conformance.model.state.world import World
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracefs import files
from conformance.model.user_events import writing

# Use the position of the file.
_HERE = -1


def submit_write(world: World, process: Process, operation: ops.SubmitWrite) -> Answer:
    """The result of a completion.

    IORING_OP_WRITE and IORING_OP_WRITEV both call user_events_write_iter(), even for no bytes.
    Negative offsets other than -1 are refused.
    """
    file = process.file(operation.slot)
    if file.path != files.DATA:
        raise NotModelled(f"io_uring on {file.path}")
    segments = [(operation.address, min(operation.count, writing.MAX_RW_COUNT))]
    if operation.vector:
        segments = writing.import_vector(world, process, operation.address, operation.count)
    else:
        writing.check_range(*segments[0])
    writing.check_call(file)
    if operation.offset < 0 and operation.offset != _HERE:
        raise Errno("EINVAL")
    writing.check_area(operation.offset, sum(length for _, length in segments))
    if any(event.inherit and process in event.tasks for event in world.perf_events):
        raise NotModelled("a worker of io_uring, which is a thread of a task that perf follows")
    # A worker thread of io_uring writes to a regular file, on any processor.
    worker = replace(process, tid="", cpu=None)
    return Answer(writing.write_core(world, worker, file, segments))


HANDLERS: Handlers = {
    ops.SubmitWrite: submit_write,
}
