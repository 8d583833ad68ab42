"""What a case sees: user_events of one system, its processes and tracefs."""

from __future__ import annotations

import os
from typing import TypeVar

from conformance import ops
from conformance.abi.profile import Profile
from conformance.client.caller import PENDING_WORK_S
from conformance.client.data_file import DataFile, Registration
from conformance.client.lockstep import Lockstep
from conformance.client.process import Process
from conformance.client.tracefs import EventDirectory, Instance, Tracefs
from conformance.ops import Observation

T = TypeVar("T")


class Event(Registration, frozen=True):
    """An event: the result of its registration, and the data file that it went through."""

    ue: UserEvents
    name: str
    data: DataFile
    bit: int

    @property
    def directory(self) -> EventDirectory:
        """The files below events/."""
        return self.ue.tracefs.directory(self.name)

    def write(self, payload: bytes = b"") -> Observation:
        """write(2) of the write index and a payload."""
        return self.data.write_event(self.index, payload)

    def unregister(self) -> Observation:
        """DIAG_IOCSUNREG of the enable word and bit."""
        return self.data.unregister(self.word, self.bit)

    def delete(self, *, eventually: bool = False) -> Observation:
        """DIAG_IOCSDEL; ``eventually`` repeats it until deferred references are gone."""
        return self.data.delete(self.name, eventually=eventually)

    def enable(self) -> Observation:
        """Enable the event in ftrace."""
        return self.ue.tracefs.enable(self.name)

    def disable(self) -> Observation:
        """Disable the event in ftrace."""
        return self.ue.tracefs.disable(self.name)


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
        # Known bugs that literals of the program depended on.
        self.bugs: set[str] = set()

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
            self.lockstep.queue(ops.Spawn("root"))
            self._tracefs = Tracefs(self.lockstep, "root", self.prefix, PENDING_WORK_S)
        return self._tracefs

    def instance(self, stem: str = "i") -> Instance:
        """A tracefs instance of the program's own, not made yet."""
        return self.tracefs.instance(self.name(stem))

    def name(self, stem: str = "e") -> str:
        """A unique event name; equal stems give equal names."""
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

    def event(
        self,
        fields: str = "",
        name: str = "e",
        *,
        bit: int = 0,
        flags: int = 0,
        enabled: bool = False,
        of: Process | None = None,
    ) -> Event:
        """Register event ``name()`` through a data file of its own; ``enabled`` by ftrace too.

        ``of`` is the process that registers it, by default the first one.
        """
        data = (of or self.process).open_data()
        definition = f"{self.name(name)} {fields}" if fields else self.name(name)
        done = data.register(definition, bit=bit, flags=flags)
        event = Event(
            done.seen, done.index, done.place, done.chosen, self, self.name(name), data, bit
        )
        if enabled:
            event.enable()
        return event

    def register(self, *definitions: str, **fields: str) -> DataFile:
        """Register definitions as they stand, then events ``name(keyword)``, in this order.

        Returns the data file of all.
        """
        data = self.open_data()
        for definition in definitions:
            data.register(definition)
        for stem, text in fields.items():
            data.register(f"{self.name(stem)} {text}" if text else self.name(stem))
        return data

    def enable(self, *stems: str) -> None:
        """Enable events ``name(stem)`` in ftrace, in this order."""
        for stem in stems:
            self.tracefs.enable(self.name(stem))

    def dated(self, switch: str, *, since: T, before: T) -> T:
        """A literal that changed with a dated switch."""
        return since if self.profile.has(switch) else before

    def bug(self, id: str, *, fixed: T, present: T) -> T:
        """A literal that depends on a known bug of the kernel, unless both are the same."""
        if fixed != present:
            self.bugs.add(id)
        return fixed if self.profile.fixed(id) else present

    def line(self, *values: str, dump: str = "", name: str = "e") -> str:
        """The body of a trace line of event ``name()``, whose fields show these values.

        Give them in the order of definition.
        ``dump`` is the payload in hexadecimal bytes, which is all that is shown before 6.4.
        """
        if not self.profile.has("remote_enable"):
            return dump
        return f"{self.name(name)}: {' '.join(values)}"

    def status_line(self, index: int, name: str, used_by: str = "") -> str:
        """A line of user_events_status, with its newline.

        ``index`` is the event's place in the status page, which is shown before 6.4.
        """
        place = "" if self.profile.has("remote_enable") else f"{index}:"
        return f"{place}{name}" + (f" # Used by {used_by}" if used_by else "") + "\n"
