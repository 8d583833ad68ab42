"""The state of the modelled system: processes, events, instances and buffers.

Deferred work is kept in ``World.pending``: transitions that may happen at any time and in any
order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from conformance.abi.profile import Generation, Profile
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.event_file import EventFile
from conformance.model.state.events import Event, EventTable
from conformance.model.state.namespaces import Attributes, Namespace
from conformance.model.state.perf_event import PerfEvent, perf_event_of
from conformance.model.state.probes import Eprobe, Kprobe
from conformance.model.state.process import Enabler, OpenFile, Process
from conformance.model.state.rfc_v1_events import RfcTable
from conformance.model.state.status_page import (
    STATUS_FTRACE,
    STATUS_OTHER,
    STATUS_PERF,
    StatusPage,
)
from conformance.model.state.synthetic_event import SyntheticEvent
from conformance.model.state.trace_instance import TOP, Instance


@dataclass(frozen=True, slots=True)
class Release:
    """delayed_user_event_enabler_put(): drop a reference."""

    event: int


@dataclass(frozen=True, slots=True)
class Remove:
    """delayed_destroy_user_event(): remove an event without references."""

    event: int


@dataclass(frozen=True, slots=True, eq=False)
class FixUp:
    """user_event_enabler_fault_fixup(): fault in a page and update the enable bit."""

    process: Process
    enabler: Enabler


Transition = Release | Remove | FixUp


@dataclass(slots=True)
class World:
    """One state that the system may be in."""

    profile: Profile
    table: EventTable
    status_page: StatusPage | None = None
    processes: dict[str, Process] = field(default_factory=dict)
    pending: list[Transition] = field(default_factory=list)
    # By name.  Earlier cases may have left a reset of the top buffer pending.
    instances: dict[str, Instance] = field(
        default_factory=lambda: {TOP: Instance(clear_trace=None)}
    )
    # Processors with a perf record that was begun and never submitted.
    perf_stuck_cpus: set[int] = field(default_factory=set)
    # Kernel events: their files as first read, the enabled ones as system:name, and filters.
    kernel_file_texts: dict[str, bytes] = field(default_factory=dict)
    kernel_enabled: set[str] = field(default_factory=set)
    kernel_files: dict[str, EventFile] = field(default_factory=dict)
    # The error that `filter` of a system shows, by system.
    system_filters: dict[str, str] = field(default_factory=dict)
    perf_events: list[PerfEvent] = field(default_factory=list)
    # By name.
    kprobes: dict[str, Kprobe] = field(default_factory=dict)
    kprobes_created: int = 0
    # Changed modes and owners by path, the gid of all other tracefs files, the files in tmpfs
    # mounts, the initial mount namespace, and the lockdown level.
    attributes: dict[str, Attributes] = field(default_factory=dict)
    tracefs_gid: int = 0
    tmpfs_files: list[str] = field(default_factory=list)
    namespace: Namespace = field(default_factory=Namespace)
    lockdown: int = 0
    # SB_RDONLY of tracefs.
    tracefs_readonly: bool = False
    # Whether tracefs has removed inodes that were not freed (s_remove_count).
    inodes_leaked: bool = False
    eprobes: dict[str, Eprobe] = field(default_factory=dict)
    synthetic_events: dict[str, SyntheticEvent] = field(default_factory=dict)

    @classmethod
    def fresh(cls, profile: Profile) -> World:
        """The system after boot."""
        if profile.generation is Generation.RFC_V1:
            return cls(profile, RfcTable(profile), StatusPage(profile))
        page = StatusPage(profile) if profile.has("status_page") else None
        return cls(profile, EventTable(profile), page)

    def process(self, actor: str) -> Process:
        """The process of an actor.  Raises NotModelled if it does not exist."""
        if actor not in self.processes:
            raise NotModelled(f"actor {actor!r} does not exist")
        return self.processes[actor]

    @property
    def open_files(self) -> list[OpenFile]:
        """The files of all descriptors of all processes."""
        return [file for process in self.processes.values() for file in process.slots.values()]

    @property
    def top(self) -> Instance:
        """The top instance."""
        return self.instances[TOP]

    def event(self, serial: int) -> Event:
        """The event with a serial.  Raises NotModelled if it was removed."""
        event = self.table.find(serial)
        if event is None:
            raise NotModelled(f"event {serial} is referenced but removed")
        return event

    # Lifetime

    def register(self, raw: str, flags: int, *, capable: bool) -> Event:
        """user_event_parse_cmd(): find or create an event.  Raises Errno and RawReturn."""
        created = self.table.created
        event = self.table.register(raw, flags, capable=capable)
        known = self.table.ids_unknown_since is None
        if known and self.table.created > created and self._removes_later():
            self.table.forget_ids(created)
        return event

    def _removes_later(self) -> bool:
        """Whether pending work may remove an event, and free its id."""
        for each, count in Counter(self.pending).items():
            if isinstance(each, Remove):
                return True
            event = self.table.find(each.event) if isinstance(each, Release) else None
            if event is not None and not event.self_reference and event.references <= count:
                return True
        return False

    def put(self, serial: int) -> None:
        """Drop a reference; the last one of an auto-delete event starts its removal."""
        event = self.event(serial)
        event.references -= 1
        if event.references == 0 and not event.self_reference:
            self.pending.append(Remove(serial))

    def delete(self, event: Event, *, capable: bool) -> None:
        """Delete an event.  Raises Errno: EBUSY before EPERM."""
        self.table.free(event, capable=capable)
        self._after_removal(event)

    def _after_removal(self, event: Event) -> None:
        """Clear the status of a removed event and mark the buffers for a reset.

        The records stay (trace_events.c:probe_remove_event_call).
        """
        if self.status_page is not None:
            self.status_page.set_status(event.index, 0)
        self.reset_later(event.was_enabled)

    def reset_later(self, names: set[str]) -> None:
        """Mark the buffers of instances, as far as they exist, for the next reset."""
        for name in names & self.instances.keys():
            self.instances[name].clear_trace = True

    def close(self, file: OpenFile) -> None:
        """Close a descriptor; the last one drops the references (user_events_release)."""
        held = self.open_files
        if file in held or any(file in each.queued for each in held):
            return
        waiting, file.queued = file.queued, []
        for each in waiting:
            self.close(each)
        event = perf_event_of(file)
        if event is not None:
            self._close_perf(file, event)
        for serial in file.events:
            self.put(serial)

    def rings_unmapped(self, owners: Iterable[object]) -> None:
        """Unmap the rings of files; the last mapping frees one and may close the file."""
        for file in owners:
            assert isinstance(file, OpenFile)
            event = perf_event_of(file)
            if event is not None and not self._maps(file):
                event.ring = None
                self.close(file)

    def _maps(self, file: OpenFile) -> bool:
        return any(file in process.memory.owners() for process in self.processes.values())

    def open_perf(self, event: PerfEvent) -> None:
        """perf_trace_event_reg(): the first perf event of a user event attaches the perf probe."""
        self.perf_events.append(event)
        if event.source is None:
            return
        source = self.event(event.source)
        source.perf_count += 1
        if source.perf_count == 1 and self.profile.has("perf_sink"):
            source.references += 1
            self._update_status(source)

    def _close_perf(self, file: OpenFile, event: PerfEvent) -> None:
        """perf_trace_event_unreg(), once no mapping of the ring holds the file."""
        if self._maps(file) or event not in self.perf_events:
            return
        self.perf_events.remove(event)
        if event.source is None:
            return
        source = self.event(event.source)
        source.perf_count -= 1
        if source.perf_count == 0 and self.profile.has("perf_sink"):
            self._update_status(source)
            self.put(source.serial)

    def remove_enablers(self, process: Process) -> None:
        """user_event_mm_remove(): release the enablers, unless another task shares them."""
        enablers, process.enablers = process.enablers or [], None
        if any(each.enablers is enablers for each in self.processes.values()):
            return
        for enabler in enablers:
            self.pending.append(Release(enabler.event))

    def apply(self, transition: Transition) -> None:
        """Apply one pending transition."""
        self.pending.remove(transition)
        match transition:
            case Release(event=serial):
                self.put(serial)
            case Remove(event=serial):
                event = self.table.find(serial)
                if event is not None and event.references == 0:
                    self.table.remove(event)
                    self._after_removal(event)
            case FixUp(enabler=enabler):
                self._fix_up(enabler)

    # Enabling

    def set_tracer(self, event: Event, instance: str, *, on: bool) -> None:
        """user_event_reg(): attach or detach the ftrace probe in an instance."""
        if on == (instance in event.tracers):
            return
        if on:
            event.tracers.add(instance)
            event.was_enabled.add(instance)
            event.references += 1
            self._update_status(event)
        else:
            event.tracers.remove(instance)
            self._update_status(event)
            self.put(event.serial)

    def _update_status(self, event: Event) -> None:
        """update_enable_bit_for(): update the status, and with it the page or the bits."""
        event.status = STATUS_FTRACE if event.tracers else 0
        if event.perf_count and self.profile.has("perf_sink"):
            event.status |= STATUS_PERF
        if event.other_attached:
            event.status |= STATUS_OTHER
        if self.status_page is not None:
            self.status_page.set_status(event.index, event.status)
        self._update_words(event)

    def _update_words(self, event: Event) -> None:
        """user_event_enabler_update(): at once if the page is present, else after a fault-in."""
        for process in self.processes.values():
            for enabler in process.enablers or []:
                if enabler.event != event.serial or enabler.faulting or enabler.freeing:
                    continue
                page = process.memory.pinned(enabler.address)
                if page is None:
                    enabler.faulting = True
                    self.pending.append(FixUp(process, enabler))
                else:
                    page.set_bit(enabler.address, enabler.bit, on=bool(event.status))

    def _fix_up(self, enabler: Enabler) -> None:
        owner = self._owner(enabler)
        if owner is None or owner.enablers is None:
            return
        enabler.faulting = False
        if enabler.freeing:
            owner.enablers.remove(enabler)
            self.release(enabler.event)
            return
        try:
            page = owner.memory.word_page(enabler.address)
        except Errno:
            return
        on = bool(self.event(enabler.event).status)
        page.set_bit(enabler.address, enabler.bit, on=on)

    def _owner(self, enabler: Enabler) -> Process | None:
        """One of the tasks that share an enabler."""
        found = (each for each in self.processes.values() if enabler in (each.enablers or []))
        return next(found, None)

    def duplicate(self, enabler: Enabler) -> Enabler:
        """user_event_enabler_dup(): copy an enabler for a forked child."""
        self.event(enabler.event).references += 1
        return Enabler(enabler.event, enabler.address, enabler.bit)

    def release(self, serial: int) -> None:
        """Drop the reference of an enabler: at once, or after an RCU grace period."""
        if self.profile.has("deferred_release"):
            self.pending.append(Release(serial))
        else:
            self.put(serial)
