"""Consuming readers: trace_pipe, and trace_pipe_raw of a CPU."""

from __future__ import annotations

import os

from conformance import ops
from conformance.client.caller import Caller, Descriptor
from conformance.client.tracefs import Tracefs
from conformance.ops import Observation
from conformance.ops.decoding import trace_page, trace_text


class Pipe(Descriptor):
    """An open, non-blocking trace_pipe of an instance, for all CPUs or one."""

    def __init__(self, process: Caller, files: Tracefs, *, cpu: int | None = None) -> None:
        self._files = files
        name = "trace_pipe" if cpu is None else f"per_cpu/cpu{cpu}/trace_pipe"
        self.opened, slot = process.open(files.path(name), os.O_RDONLY | os.O_NONBLOCK)
        super().__init__(process, slot)

    def read(self) -> Observation:
        """read(2): consume records; the data is the text of ops.decoding.trace_text."""
        return self.process.run(
            ops.ReadPipe(self.process.actor, self.slot, trace_page.SIZE, self._files.sizes)
        )

    def records(self) -> list[str]:
        """Bodies of the lines of own events that one read(2) returns."""
        return trace_text.bodies(self.read().text, self._files.prefix)


class RawPipe(Descriptor):
    """An open trace_pipe_raw of CPU 0; the type of one event marks records as own."""

    def __init__(self, process: Caller, files: Tracefs, event: str) -> None:
        self._files = files
        self._id_path = files.event_path(event, "id")
        path = files.path("per_cpu/cpu0/trace_pipe_raw")
        self.opened, slot = process.open(path, os.O_RDONLY | os.O_NONBLOCK)
        super().__init__(process, slot)

    def read(self) -> Observation:
        """read(2) of a page as text (ops.decoding.trace_page)."""
        sizes = self._files.recorded_sizes
        return self.process.run(ops.ReadPage(self.process.actor, self.slot, self._id_path, sizes))
