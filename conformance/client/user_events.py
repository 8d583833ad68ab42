"""What a case sees: user_events of one system, its processes and tracefs."""

from __future__ import annotations

import os
from typing import TypeVar

from conformance.abi.profile import Profile
from conformance.client.data_file import DataFile
from conformance.client.lockstep import Lockstep
from conformance.client.process import EVENTUALLY, Process
from conformance.client.tracefs import Instance, Tracefs
from conformance.ops import syscalls as op

T = TypeVar("T")


class UserEvents:
    """user_events of one system, as one case uses it.

    ``serial`` tells this program's event names from those of other programs in the same
    guest.
    """

    def __init__(self, lockstep: Lockstep, serial: int = 0) -> None:
        self.lockstep = lockstep
        self.prefix = f"t{serial:05}_"
        self._processes = 0
        self._main: Process | None = None
        self._tracefs: Tracefs | None = None

    @property
    def profile(self) -> Profile:
        """The contract this kernel is judged by."""
        return self.lockstep.model.profile

    @property
    def process(self) -> Process:
        """The program's first process."""
        if self._main is None:
            self._main = self.new_process()
        return self._main

    @property
    def tracefs(self) -> Tracefs:
        """The files of tracefs, used by a root process that registers nothing."""
        if self._tracefs is None:
            self.lockstep.queue(op.Spawn("root"))
            self._tracefs = Tracefs(self.lockstep, "root", self.prefix, EVENTUALLY)
        return self._tracefs

    def instance(self, stem: str = "i") -> Instance:
        """A tracefs instance of the program's own, not made yet."""
        return self.tracefs.instance(self.name(stem))

    def name(self, stem: str = "e") -> str:
        """An event name nobody else uses; equal stems give equal names."""
        return self.prefix + stem

    def new_process(self) -> Process:
        """One more process, root, that has touched nothing yet."""
        process = Process(self.lockstep, self.next_actor())
        process.prepare()
        return process

    def fork(self, parent: Process) -> Process:
        """A copy of a process."""
        return parent.fork(self.next_actor())

    def next_actor(self) -> str:
        """The name of one more actor."""
        self._processes += 1
        return f"p{self._processes}"

    def open_data(self, flags: int = os.O_RDWR) -> DataFile:
        """Open user_events_data in the first process."""
        return self.process.open_data(flags)

    def dated(self, switch: str, *, since: T, before: T) -> T:
        """A literal that changed with a dated switch."""
        return since if self.profile.has(switch) else before

    def line(self, *values: str, dump: str = "", name: str = "e") -> str:
        """The body of a trace line of event ``name()``, whose fields show these values.

        Give them in the order of definition; before 6.5 the last field comes first.
        ``dump`` is the payload in hexadecimal bytes, which is all that is shown before 6.4.
        """
        if not self.profile.has("remote_enable"):
            return dump
        ordered = values if self.profile.has("fields_printed_in_order") else values[::-1]
        return f"{self.name(name)}: {' '.join(ordered)}"

    def status_line(self, index: int, name: str, used_by: str = "") -> str:
        """A line of user_events_status, with its newline.

        ``index`` is the event's place in the status page, which is shown before 6.4.
        """
        place = "" if self.profile.has("remote_enable") else f"{index}:"
        return f"{place}{name}" + (f" # Used by {used_by}" if used_by else "") + "\n"
