"""Readers that consume: descriptors of trace_pipe, and of trace_pipe_raw of a processor."""

from __future__ import annotations

import os

from conformance import ops
from conformance.client.process import Process
from conformance.client.tracefs import Tracefs
from conformance.ops import Observation
from conformance.ops.decoding import trace_page


class Pipe:
    """An open trace_pipe of an instance, of all processors or of one; it never waits."""

    def __init__(self, process: Process, files: Tracefs, *, cpu: int | None = None) -> None:
        self._process = process
        self._files = files
        name = "trace_pipe" if cpu is None else f"per_cpu/cpu{cpu}/trace_pipe"
        self.opened, self._slot = process.open(files.path(name), os.O_RDONLY | os.O_NONBLOCK)

    def read(self) -> Observation:
        """read(2): the bodies of the lines of own events, which are gone then."""
        return self._process.run(
            ops.ReadPipe(
                self._process.actor,
                self._slot,
                trace_page.SIZE,
                self._files.prefix,
                self._files.sizes,
            )
        )

    def close(self) -> Observation:
        """close(2)."""
        return self._process.close(self._slot)


class RawPipe:
    """An open trace_pipe_raw; what it reads is told by the type of one event."""

    def __init__(self, process: Process, files: Tracefs, event: str, *, cpu: int = 0) -> None:
        self._process = process
        self._files = files
        self._id_path = files.event_path(event, "id")
        path = files.path(f"per_cpu/cpu{cpu}/trace_pipe_raw")
        self.opened, self._slot = process.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def read(self) -> Observation:
        """read(2) of a page, as text: see program/page.py."""
        sizes = self._files.recorded_sizes
        return self._process.run(
            ops.ReadPage(self._process.actor, self._slot, self._id_path, sizes)
        )

    def close(self) -> Observation:
        """close(2)."""
        return self._process.close(self._slot)
