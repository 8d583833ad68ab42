"""The state that the next action of a random program chooses from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from conformance.client.addresses import PAGE, WORDS
from conformance.client.memory import discard
from conformance.client.tasks import Task, first_task
from conformance.client.tracefs import SYSTEM
from conformance.model.state.events import Event
from conformance.model.state.world import Release, Remove, World
from conformance.runner.process_pool import MOST_ACTORS
from conformance.session.explore.choices import Choices

#: Few names: most actions meet an event that an earlier one has made.
STEMS = ("a", "b", "c")
#: A new process costs as much as a dozen other calls.
MOST_PROCESSES = 5
_PAGES = 2
# The enable word of the process that waits for deferred work.
_LAST_WORD = WORDS + PAGE // 2


class Crowded(Exception):
    """A program needs more processes at a time than a guest can have."""


class Registered(Struct):
    """A registration that succeeded; ``payload`` fits its event."""

    data: Any
    name: str
    payload: bytes
    index: int
    address: int
    bit: int


class Scene(Struct):
    """The processes, descriptors, registrations, pages and listeners of a program."""

    ue: Any
    choices: Choices
    processes: list[Any] = field(default_factory=list)
    files: list[Any] = field(default_factory=list)
    registered: list[Registered] = field(default_factory=list)
    # Fields and payload by name, as they were registered last.
    definitions: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    perf: list[Any] = field(default_factory=list)
    rings: list[Any] = field(default_factory=list)
    # Addresses of enable words, and of mapped pages.
    words: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    instance: Any = None
    # Whether io_uring has written an event.
    submitted: bool = False
    # Address and bit of registrations that were undone.
    gone: list[tuple[int, int]] = field(default_factory=list)
    # Whether page faults may wait of which the model does not know.
    raced: bool = False
    # The process that waits for deferred work, and its page that is faulted in.
    waiting: Any = None
    last_page: int = 0
    # Processes that drive tasks: they outlive these.
    drivers: int = 0
    started: set[str] = field(default_factory=set)
    executed: set[str] = field(default_factory=set)

    @property
    def remote(self) -> bool:
        """Whether registrations have enable words."""
        return bool(self.ue.profile.subject.has("remote_enable"))

    @property
    def world(self) -> World:
        """The state of the model after all that the client has queued."""
        self.ue.lockstep.subject.run()
        world: World = self.ue.lockstep.subject.model.world
        return world

    def settle(self, *, above: int = 0) -> None:
        """Wait for deferred work, if more than ``above`` pieces of it may be pending.

        References are dropped in the order in which the kernel began to: an event whose last one is
        dropped now goes after all of them.
        """
        pending = self.world.pending
        if len(pending) <= above and not self.ue.lockstep.subject.model.is_ambiguous:
            return
        if self.raced:
            self.raced = False
            self._wait_for_faults()
        if self.remote and any(isinstance(each, Release | Remove) for each in self.world.pending):
            data = self.holder().open_data()
            word = data.process.word_at(_LAST_WORD, value=None)
            data.register(self.ue.name("last"), word=word)
            data.unregister(word)
            data.close()
        self.ue.tracefs.status(eventually=True)

    def _wait_for_faults(self) -> None:
        """Wait for an enable bit in a page that is faulted in after all others.

        After a race, a word that is not written may stay so, or its fault may still wait.
        """
        holder, name = self.holder(), self.ue.name("fault")
        self.last_page = self.last_page or holder.map()
        data, word = holder.open_data(), holder.word_at(self.last_page, value=None)
        data.register(name, word=word)
        self.ue.call(discard, holder, self.last_page)
        self.ue.tracefs.enable(name)
        self.ue.tracefs.status(eventually=True)
        self.ue.tracefs.disable(name)
        data.unregister(word)
        data.close()

    # Processes

    def runs(self, process: Any) -> bool:
        """Whether a process lives, and does not wait for its vfork child."""
        known = self.world.processes.get(process.actor)
        if known is None:
            # Its start is queued, or it has ended.
            return process.actor not in self.started
        self.started.add(process.actor)
        return not known.waits_for

    @property
    def running(self) -> list[Any]:
        """The processes that run."""
        return [each for each in self.processes if self.runs(each)]

    def process(self) -> Any:
        """A process that runs."""
        if running := self.running:
            return self.choices.late(running)
        if self.choices.rarely(2):
            return self.task()
        self.expect_process()
        made = self.ue.new_process() if self.processes else self.ue.process
        self.processes.append(made)
        return made

    def holder(self) -> Any:
        """A process that no action ends."""
        if self.waiting is None:
            self.expect_process()
            self.waiting = self.ue.new_process()
        return self.waiting

    def task(self) -> Any:
        """A task that runs: it can make threads."""
        if tasks := [each for each in self.running if is_task(each)]:
            return self.choices.late(tasks)
        self.expect_process()
        self.drivers += 1
        made = self.ue.call(first_task, self.ue)
        self.processes.append(made)
        self.started.add(made.actor)
        return made

    def expect_process(self) -> None:
        """A process is about to be made.  Raises Crowded if the guest has no place for it."""
        plain = sum(not is_task(each) for each in self.running)
        # One more stands by in every guest.
        if self.drivers + plain + (self.waiting is not None) + 1 >= MOST_ACTORS:
            raise Crowded

    def enablers(self, process: Any) -> list[tuple[int, int]]:
        """Address and bit of the registrations that a process has."""
        known = self.world.processes.get(process.actor)
        found = (known.enablers if known else None) or []
        return [(each.address, each.bit) for each in found if not each.freeing]

    # Descriptors

    def usable(self, data: Any) -> bool:
        """Whether a descriptor is open in a process that runs.

        The number of a closed one may be that of another.
        """
        known = self.world.processes.get(data.process.actor)
        return self.runs(data.process) and known is not None and data.slot in known.slots

    def file(self, process: Any = None) -> Any:
        """A descriptor of user_events_data in a process that runs, or in this one."""
        files = [
            each
            for each in self.files
            if (process is None or each.process.actor == process.actor) and self.usable(each)
        ]
        return self.choices.late(files) if files else self.open(os.O_RDWR, process)

    def open(self, flags: int, process: Any = None) -> Any:
        """A new descriptor of user_events_data."""
        data = (process or self.process()).open_data(flags)
        self.files.append(data)
        return data

    def registration(self) -> Registered | None:
        """One of a descriptor that can be used."""
        found = [each for each in self.registered if self.usable(each.data)]
        return self.choices.late(found) if found else None

    # Events

    def name(self) -> str:
        """The name of an event, which may exist."""
        name: str = self.ue.name(self.choices.of(STEMS))
        return name

    @property
    def events(self) -> Sequence[Event]:
        """The events of the program that have files."""
        mine = (each for each in self.world.table.events if each.name.startswith(self.ue.prefix))
        return [each for each in mine if each.has_directory and "/" not in each.tracepoint]

    def event(self) -> tuple[str, str]:
        """System and name below events/, mostly those of an event that exists."""
        found = [(each.system, each.tracepoint) for each in self.events]
        if not found or self.choices.rarely(12):
            return SYSTEM, self.name()
        return self.choices.late(found)

    def records(self) -> None:
        """Read the records of the trace buffer, which is emptied where the model lost track."""
        if self.world.top.unknown_because:
            self.ue.tracefs.clear_trace()
        self.ue.tracefs.records()

    @property
    def tracefs(self) -> Any:
        """The files of tracefs, seldom those of an instance."""
        if not self.choices.rarely(8):
            return self.ue.tracefs
        if self.instance is None:
            self.instance = self.ue.instance()
            self.instance.make()
        return self.instance

    # Memory

    def watched(self, process: Any, address: int, size: int) -> Any:
        """An enable word that is compared from now on, unless its address is of no use.

        Words that tasks share are read once: the kernel may write them between two reads.
        """
        at = address if address in self.words or address in self.pages else WORDS
        known = self.world.processes
        memory = known[process.actor].memory if process.actor in known else None
        for each in self.running:
            if each.actor in known and known[each.actor].memory is memory:
                return each.word_at(at, max(4, min(size, 8)), value=None)
        return process.word_at(at, value=None)

    def page(self, process: Any) -> int:
        """A page of anonymous memory, or one that was."""
        if self.pages and not self.choices.rarely(3):
            return self.choices.late(self.pages)
        page: int = process.map(_PAGES)
        self.pages += [page, page + PAGE]
        return page


def is_task(process: Any) -> bool:
    """Whether a process has no interpreter."""
    return isinstance(process.subject, Task)
