"""The state of the modelled system: its processes, events, listeners and buffers.

Work the kernel does later is kept in ``World.pending``: transitions that may happen at
any moment from now on, in any order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.abi.profile import Generation, Profile
from conformance.abi.uapi import EVENT_BIT_FTRACE, EVENT_BIT_OTHER, EVENT_BIT_PERF
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory import Page
from conformance.model.state.event_file import EventFile
from conformance.model.state.events import Event, EventTable
from conformance.model.state.namespaces import Attributes, Namespace
from conformance.model.state.perf_event import PerfEvent, perf_event_of
from conformance.model.state.probes import Eprobe, Kprobe
from conformance.model.state.process import Enabler, OpenFile, Process
from conformance.model.state.status_page import StatusPage
from conformance.model.state.synthetic_event import SyntheticEvent
from conformance.model.state.trace_instance import TOP, Instance

# EVENT_STATUS_*: what is attached to an event.
STATUS_FTRACE = 1 << EVENT_BIT_FTRACE
STATUS_PERF = 1 << EVENT_BIT_PERF
STATUS_OTHER = 1 << EVENT_BIT_OTHER


@dataclass(frozen=True, slots=True)
class Release:
    """A reference to an event is dropped: delayed_user_event_enabler_put()."""

    event: int


@dataclass(frozen=True, slots=True)
class Remove:
    """An event without references is removed: delayed_destroy_user_event()."""

    event: int


@dataclass(frozen=True, slots=True, eq=False)
class FixUp:
    """A page is faulted in and its word updated: user_event_enabler_fault_fixup()."""

    process: Process
    enabler: Enabler


Transition = Release | Remove | FixUp


@dataclass(slots=True)
class World:
    """Everything the model knows about one running system."""

    profile: Profile
    table: EventTable
    status_page: StatusPage | None = None
    processes: dict[str, Process] = field(default_factory=dict)
    pending: list[Transition] = field(default_factory=list)
    # By name; what earlier programs of the guest left to be done in the first is not known.
    instances: dict[str, Instance] = field(
        default_factory=lambda: {TOP: Instance(clear_trace=None)}
    )
    # Processors on which a record for perf was begun that will never be submitted.
    perf_stuck: set[int] = field(default_factory=set)
    # Events of the kernel's own: the content of their files, fixed by the first reading,
    # and which of them are enabled, as system:name.
    opaque: dict[str, bytes] = field(default_factory=dict)
    kernel_enabled: set[str] = field(default_factory=set)
    kernel_files: dict[str, EventFile] = field(default_factory=dict)
    perf_events: list[PerfEvent] = field(default_factory=list)
    kprobes: list[Kprobe] = field(default_factory=list)
    kprobes_made: int = 0
    # Files whose mode or owner somebody changed, the group of the other files of tracefs, what
    # was made in file systems of a program's own, the mounts that processes begin with, and the
    # level of lockdown.
    attributes: dict[str, Attributes] = field(default_factory=dict)
    group: int = 0
    made: list[str] = field(default_factory=list)
    namespace: Namespace = field(default_factory=Namespace)
    lockdown: int = 0
    # Whether nothing is written to tracefs, through whichever mount (SB_RDONLY).
    readonly: bool = False
    eprobes: list[Eprobe] = field(default_factory=list)
    synthetic_events: list[SyntheticEvent] = field(default_factory=list)

    @classmethod
    def fresh(cls, profile: Profile, table: EventTable | None = None) -> World:
        """The system after boot; ``table`` is for ABIs that have event rules of their own."""
        has_page = profile.has("status_page") or profile.generation is Generation.RFC_V1
        page = StatusPage(profile) if has_page else None
        return cls(profile, table or EventTable(profile), page)

    def process(self, actor: str) -> Process:
        """The process of an actor.  Raises NotModelled for one that never was or is gone."""
        if actor not in self.processes:
            raise NotModelled(f"actor {actor!r} does not live")
        return self.processes[actor]

    @property
    def top(self) -> Instance:
        """The instance at the top."""
        return self.instances[TOP]

    def event(self, serial: int) -> Event:
        """An event that is referenced and therefore lives."""
        event = self.table.find(serial)
        if event is None:
            raise NotModelled(f"event {serial} is referenced but gone")
        return event

    # Lifetime

    def put(self, serial: int) -> None:
        """Drop a reference; the last one of an auto-delete event starts its removal."""
        event = self.event(serial)
        event.references -= 1
        if event.references == 0 and not event.self_reference:
            self.pending.append(Remove(serial))

    def forget(self, event: Event) -> None:
        """What the removal of an event leaves behind in status page and instances.

        Its records stay where they are (trace_events.c:probe_remove_event_call).
        """
        if self.status_page is not None:
            self.status_page.show(event.index, 0)
        for name in event.was_enabled:
            self.instances[name].clear_trace = True

    def close(self, file: OpenFile) -> None:
        """A descriptor went away; the last one drops the references (user_events_release)."""
        held = [each for process in self.processes.values() for each in process.slots.values()]
        if file in held or any(file in each.passed for each in held):
            return
        waiting, file.passed = file.passed, []
        for each in waiting:
            self.close(each)
        event = perf_event_of(file)
        if event is not None:
            self._close_perf(file, event)
        for serial in file.events:
            self.put(serial)

    def unmapped(self, file: OpenFile) -> None:
        """A mapping of a ring went away; the last one takes the ring and may close the file."""
        event = perf_event_of(file)
        if event is not None and not self._maps(file):
            event.ring = None
            self.close(file)

    def _maps(self, file: OpenFile) -> bool:
        return any(file in process.memory.owners() for process in self.processes.values())

    def open_perf(self, event: PerfEvent) -> None:
        """perf_trace_event_reg(): perf listens to a user event for its first event of perf."""
        self.perf_events.append(event)
        if event.source is None:
            return
        source = self.event(event.source)
        source.perf += 1
        if source.perf == 1 and self.profile.has("perf_sink"):
            source.references += 1
            self._tell(source)

    def _close_perf(self, file: OpenFile, event: PerfEvent) -> None:
        """perf_trace_event_unreg(), once no mapping of the ring keeps the file open."""
        if self._maps(file) or event not in self.perf_events:
            return
        self.perf_events.remove(event)
        if event.source is None:
            return
        source = self.event(event.source)
        source.perf -= 1
        if source.perf == 0 and self.profile.has("perf_sink"):
            self._tell(source)
            self.put(source.serial)

    def leave(self, process: Process) -> None:
        """Enablers of a task that exits or execs, unless others have them as well.

        user_event_mm_remove(): struct user_event_mm counts its tasks.
        """
        enablers, process.enablers = process.enablers or [], None
        if any(each.enablers is enablers for each in self.processes.values()):
            return
        for enabler in enablers:
            self.pending.append(Release(enabler.event))

    def apply(self, transition: Transition) -> None:
        """Let one pending transition happen."""
        self.pending.remove(transition)
        match transition:
            case Release(event=serial):
                self.put(serial)
            case Remove(event=serial):
                event = self.table.find(serial)
                if event is not None and event.references == 0:
                    self.table.remove(event)
                    self.forget(event)
            case FixUp(enabler=enabler):
                self._fix_up(enabler)

    # Who listens, and who is told

    def set_tracer(self, event: Event, instance: str, *, on: bool) -> None:
        """ftrace starts or stops listening to an event (user_event_reg)."""
        if on == (instance in event.tracers):
            return
        if on:
            event.tracers.add(instance)
            event.was_enabled.add(instance)
            event.references += 1
            self._tell(event)
        else:
            event.tracers.remove(instance)
            self._tell(event)
            self.put(event.serial)

    def _tell(self, event: Event) -> None:
        """Look who is attached, and say so in page or words (update_enable_bit_for)."""
        event.status = STATUS_FTRACE if event.tracers else 0
        if event.perf and self.profile.has("perf_sink"):
            event.status |= STATUS_PERF
        if event.foreign:
            event.status |= STATUS_OTHER
        if self.status_page is not None:
            self.status_page.show(event.index, event.status)
        self._update_words(event)

    def _update_words(self, event: Event) -> None:
        """user_event_enabler_update(): at once where the page is there, later elsewhere."""
        for process in self.processes.values():
            for enabler in process.enablers or []:
                if enabler.event != event.serial or enabler.faulting or enabler.freeing:
                    continue
                page = process.memory.pinned(enabler.address)
                if page is None:
                    enabler.faulting = True
                    self.pending.append(FixUp(process, enabler))
                else:
                    write_bit(page, enabler.address, enabler.bit, on=bool(event.status))

    def _fix_up(self, enabler: Enabler) -> None:
        keeper = self._keeper(enabler)
        if keeper is None or keeper.enablers is None:
            return
        enabler.faulting = False
        if enabler.freeing:
            keeper.enablers.remove(enabler)
            self.release(enabler.event)
            return
        try:
            page = keeper.memory.fault_in(enabler.address)
        except Errno:
            return
        on = bool(self.event(enabler.event).status)
        write_bit(page, enabler.address, enabler.bit, on=on)

    def _keeper(self, enabler: Enabler) -> Process | None:
        """A task that has an enabler, of those that may have it in common."""
        found = (each for each in self.processes.values() if enabler in (each.enablers or []))
        return next(found, None)

    def duplicate(self, enabler: Enabler) -> Enabler:
        """The copy of an enabler that a forked child gets (user_event_enabler_dup)."""
        self.event(enabler.event).references += 1
        return Enabler(enabler.event, enabler.address, enabler.bit)

    def release(self, serial: int) -> None:
        """Drop an enabler's reference: at once, or after an RCU grace period."""
        if self.profile.has("deferred_release"):
            self.pending.append(Release(serial))
        else:
            self.put(serial)


def write_bit(page: Page, address: int, bit: int, *, on: bool) -> None:
    """Set or clear one bit of the word at ``address``, leaving all others alone."""
    position = address % len(page.content) + bit // 8
    mask = 1 << bit % 8
    if on:
        page.content[position] |= mask
    else:
        page.content[position] &= ~mask & 0xFF
