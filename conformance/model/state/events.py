"""Events: their identity, references and lifetime, and the table they live in.

Source: kernel/trace/trace_events_user.c, functions named where a rule is applied.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

from conformance.abi import grammar
from conformance.abi.profile import Profile
from conformance.abi.uapi import (
    EVENT_BIT_PERF,
    USER_EVENT_REG_MULTI_FORMAT,
    USER_EVENT_REG_PERSIST,
)
from conformance.model.errors import Errno, NotModelled
from conformance.model.state import status_page
from conformance.model.state.event_file import EventFile
from conformance.model.state.trace_instance import TOP
from conformance.model.text import definition
from conformance.model.text.definition import Command, Field
from conformance.model.text.jhash import bucket, bucket_bits

DEFAULT_MAX_EVENTS = 32768
_FIRST_ID = 1 << 32
# TRACE_EVENT_TYPE_MAX
_LAST_ID = 65535


@dataclass(slots=True, eq=False)
class Event:
    """One user_event.  ``references`` does not count the self reference.

    ``index`` is its place in the status page, 0 where there is none.  ``status`` are the
    EVENT_STATUS_* bits found when a tracer last came or went; ``foreign`` says that a
    probe which is no tracer's is attached, which the kernel notices only then.
    """

    serial: int
    name: str
    fields: tuple[Field, ...]
    flags: int
    tracepoint: str
    self_reference: bool
    # Whether the status shows the text flag BPF_ITER, and whether events/ has a directory.
    bpf_iter: bool = False
    visible: bool = True
    references: int = 0
    # The instances that listen to it, and those that ever did.
    tracers: set[str] = field(default_factory=set)
    was_enabled: set[str] = field(default_factory=set)
    index: int = 0
    status: int = 0
    foreign: bool = False
    # How many events of perf are open on it.
    perf: int = 0
    # What stands for its number in `id`: one that the kernel gives to nothing.
    id: int = 0
    # How many eprobes there are on it.  The kernel's own count of them (trace_event_try_get_ref)
    # is a reference like others as the documentation has it.
    probes: int = 0
    # What hangs on it, by instance.
    files: dict[str, EventFile] = field(default_factory=dict)

    def file_in(self, instance: str) -> EventFile:
        """What hangs on it in an instance."""
        return self.files.setdefault(instance, EventFile(self.serial, instance))

    @property
    def file(self) -> EventFile:
        """What hangs on it at the top."""
        return self.file_in(TOP)

    @property
    def multi(self) -> bool:
        """Whether the event is one format of a multi-format name."""
        return bool(self.flags & USER_EVENT_REG_MULTI_FORMAT)

    @property
    def system(self) -> str:
        """The tracefs directory below events/."""
        return grammar.MULTI_SYSTEM if self.multi else grammar.SYSTEM

    @property
    def minimum(self) -> int:
        """Fewest payload bytes of a write: the end of the last field (user_event_add_field)."""
        if not self.fields:
            return 0
        last = self.fields[-1]
        return last.offset + last.size - grammar.TRACE_ENTRY_SIZE

    @property
    def listened_to(self) -> bool:
        """Whether any probe is attached to the tracepoint, whoever's it is."""
        return bool(self.tracers) or self.foreign or bool(self.status & 1 << EVENT_BIT_PERF)

    def print_format(self, profile: Profile) -> str:
        """What `format` ends with."""
        return definition.print_format(self.fields, profile)

    @property
    def deletable(self) -> bool:
        """user_event_last_ref(): only the self reference is left.

        An auto-delete event is never seen with no reference at all: while it awaits its
        removal it holds one for the work that will do it.
        """
        return self.self_reference and self.references == 0


class EventTable:
    """All events of the system, in order of creation (the order of dynamic_events)."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.maximum = DEFAULT_MAX_EVENTS
        self.multi_id = 0
        # Whether tracefs makes the directories of new events.
        self.makes_directories = True
        # The id that the kernel gave to the only event there was, once it was looked at.
        self.first_id: int | None = None
        self._created = 0
        self._ids_used = 0
        self._freed_ids: list[int] = []
        self._by_serial: dict[int, Event] = {}
        self._by_name: dict[str, list[Event]] = {}
        self._indexes = status_page.Indexes(profile)

    @property
    def created(self) -> int:
        """How many events there ever were: the serial number of the next."""
        return self._created

    @property
    def events(self) -> list[Event]:
        """The events, oldest first."""
        return list(self._by_serial.values())

    def with_id(self, number: int) -> Event | None:
        """The event that has an id now."""
        return next((each for each in self._by_serial.values() if each.id == number), None)

    def find(self, serial: int) -> Event | None:
        """The event with a serial number, unless it is gone."""
        return self._by_serial.get(serial)

    def tracepoint(self, system: str, name: str) -> Event:
        """The event of a directory below events/.  Raises Errno("ENOENT")."""
        for event in self._by_serial.values():
            if event.system == system and event.tracepoint == name and "/" not in name:
                if not event.visible:
                    break
                return event
        raise Errno("ENOENT")

    def in_hash_order(self) -> list[Event]:
        """Order of user_events_status: by bucket, newest first within one."""
        bits = bucket_bits(self.profile)
        newest_first = reversed(self._by_serial.values())
        return sorted(newest_first, key=lambda event: bucket(event.name.encode("latin-1"), bits))

    def named(self, name: str) -> list[Event]:
        """Events with a registered name, newest first (one hash chain)."""
        return self._by_name.get(name, [])[::-1]

    def remove(self, event: Event) -> None:
        """Take an event out of the table; its index and its id are free again."""
        del self._by_serial[event.serial]
        self._by_name[event.name].remove(event)
        heappush(self._freed_ids, event.id)
        self._indexes.free(event.index)

    def register(self, raw: str, flags: int, *, capable: bool) -> Event:
        """Find or create the event of a registration string (user_event_parse).

        Raises Errno and RawReturn in the kernel's order of checks.
        """
        command = Command.parse(raw)
        if self.profile.has("text_flags_refused"):
            refused_flags = flags != 0 and not self.profile.has("persist")
            if command.flags is not None or refused_flags:
                raise Errno("EINVAL")
        if flags & USER_EVENT_REG_PERSIST and not capable:
            raise Errno("EPERM")
        found = self._existing(command, flags)
        return found if found is not None else self._create(command, flags, capable=capable)

    def _existing(self, command: Command, flags: int) -> Event | None:
        """find_user_event()."""
        tokens = definition.registration_tokens(command.arguments, self.profile)
        multi = bool(flags & USER_EVENT_REG_MULTI_FORMAT)
        for event in self.named(command.name):
            if event.multi != multi:
                continue
            if not self.profile.has("arguments_matched"):
                return event
            if definition.fields_match(event.fields, tokens, self.profile):
                return event
            if not multi:
                raise Errno("EADDRINUSE")
        return None

    def _create(self, command: Command, flags: int, *, capable: bool) -> Event:
        tracepoint = command.name
        if flags & USER_EVENT_REG_MULTI_FORMAT:
            # user_event_set_tp_name() runs before the fields are parsed: failures count.
            tracepoint = f"{command.name}.{self.multi_id:x}"
            self.multi_id += 1
        # Looked for before the fields are parsed; taken behind everything that can fail.
        index = self._indexes.lowest() if self.profile.has("status_page") else 0
        fields = definition.parse_fields(command.arguments)
        if self.profile.has("remote_enable") and len(self._by_serial) >= self.maximum:
            raise Errno("EMFILE")
        if self.first_id is not None and len(self._by_serial) > _LAST_ID - self.first_id:
            # trace_output.c:register_trace_event(): all events of the kernel share them.
            raise Errno("ENODEV")
        persistent = bool(flags & USER_EVENT_REG_PERSIST) or not self.profile.has("auto_delete")
        event = Event(self._created, command.name, fields, flags, tracepoint, persistent)
        event.index = index
        if not self.profile.has("bpf_iter_ignored"):
            event.bpf_iter = "BPF_ITER" in (command.flags or "").split(",")
        # tracefs looks its directories up with the rights of whoever makes the event.
        allowed = capable or self.profile.has("events_made_as_root")
        event.visible = allowed and self.makes_directories
        self._add(event)
        return event

    def _take_id(self) -> int:
        """trace_output.c:register_trace_event(): the lowest that is free, or one never used."""
        if self._freed_ids and self.profile.has("ids_reused"):
            return heappop(self._freed_ids)
        self._ids_used += 1
        return _FIRST_ID + self._ids_used

    def _add(self, event: Event) -> None:
        event.id = self._take_id()
        self._created += 1
        self._by_serial[event.serial] = event
        self._by_name.setdefault(event.name, []).append(event)
        self._indexes.take(event.index)

    def free(self, event: Event, *, capable: bool) -> None:
        """Delete one event on demand: busy before forbidden (user_event_free)."""
        if event.perf and not self.profile.has("perf_sink"):
            raise NotModelled("deleting an event that is open in perf, which takes no notice")
        if event.probes or not event.deletable:
            raise Errno("EBUSY")
        if event.flags & USER_EVENT_REG_PERSIST and not capable:
            raise Errno("EPERM")
        self.remove(event)
