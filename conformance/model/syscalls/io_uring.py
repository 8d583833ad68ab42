"""Writing through io_uring: the same events, by another road.

Source: io_uring/rw.c:io_write, io_rw_init_file, io_kiocb_update_pos; lib/iov_iter.c.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.world import World
from conformance.model.tracefs import files
from conformance.model.user_events import writing
from conformance.ops import tracing
from conformance.ops.syscalls import Operation

# The position of the file itself.
_HERE = -1


def submit_write(world: World, operation: tracing.SubmitWrite) -> Answer:
    """The result of a completion.

    Both kinds of write end in user_events_write_iter(), which has no position and is called for
    nothing at all, too.  No position is right that is none.
    """
    process = world.process(operation.actor)
    file = process.file(operation.slot)
    if file.path != files.DATA:
        raise NotModelled(f"io_uring on {file.path}")
    segments = [(operation.address, operation.count)]
    if operation.vector:
        segments = writing.import_vector(process, operation.address, operation.count)
    else:
        writing.check_range(*segments[0])
    if file.flags & os.O_ACCMODE == os.O_RDONLY:
        raise Errno("EBADF")
    if operation.offset < 0 and operation.offset != _HERE:
        raise Errno("EINVAL")
    # A regular file, which may wait: a thread that io_uring keeps for that writes, anywhere.
    worker = replace(process, cpu=None)
    return Answer(writing.write_core(world, worker, file, segments))


HANDLERS: dict[type[Operation], Callable[[World, Any], Answer]] = {
    tracing.SubmitWrite: submit_write,
}
