"""User events and the table of them: identity, references, lifetime.

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
from conformance.model.state.event_file import EventFile
from conformance.model.state.status_page import Indexes, StatusPage
from conformance.model.state.trace_instance import TOP
from conformance.model.text import definition
from conformance.model.text.definition import Command, Field
from conformance.model.text.jhash import bucket, bucket_bits

DEFAULT_MAX_EVENTS = 32768
_FIRST_ID = 1 << 32
# Of events whose ids are unknown, by serial.
_UNKNOWN_ID = 1 << 48
NAME_MAX = 255
# TRACE_EVENT_TYPE_MAX
_LAST_ID = 65535
# The sign of an int.
_SIGN = 1 << 31


@dataclass(slots=True, eq=False)
class Event:
    """struct user_event; ``references`` does not count the self reference.

    ``index`` is the place in the status page, 0 without one.  ``status`` holds the EVENT_STATUS_*
    bits as of the last registration of a probe.  ``other_attached`` is a probe of neither ftrace
    nor perf, which the kernel notices only at the next update of the status.
    """

    serial: int
    name: str
    fields: tuple[Field, ...]
    flags: int
    tracepoint: str
    self_reference: bool
    # The fields as registered.
    arguments: str | None = None
    # Whether user_events_status shows FLAG:BPF_ITER.
    bpf_iter: bool = False
    has_directory: bool = True
    references: int = 0
    # Instances in which the event is enabled, and those in which it ever was.
    tracers: set[str] = field(default_factory=set)
    was_enabled: set[str] = field(default_factory=set)
    index: int = 0
    status: int = 0
    other_attached: bool = False
    # Open perf events.
    perf_count: int = 0
    # A stand-in for the id that the kernel assigns.
    id: int = 0
    # Attached eprobes.  The kernel counts them as references (trace_event_try_get_ref).
    eprobe_count: int = 0
    # Per instance.
    files: dict[str, EventFile] = field(default_factory=dict)

    def file_in(self, instance: str) -> EventFile:
        """The event as an instance has it."""
        return self.files.setdefault(instance, EventFile(self.serial, instance))

    @property
    def file(self) -> EventFile:
        """The event as the top instance has it."""
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
    def min_size(self) -> int:
        """user->min_size: the end of the last field, as a payload size (user_event_add_field).

        It is an int, and negative where offsets have wrapped.
        """
        if not self.fields:
            return 0
        last = self.fields[-1]
        end = last.offset + last.size - grammar.TRACE_ENTRY_SIZE
        return (end + _SIGN) % (2 * _SIGN) - _SIGN

    @property
    def is_enabled(self) -> bool:
        """Whether the tracepoint is enabled, that is, any probe is attached to it."""
        return bool(self.tracers) or self.other_attached or bool(self.status & 1 << EVENT_BIT_PERF)

    def definition(self, page: StatusPage | None) -> str:
        """The line in dynamic_events (user_event_show); only rfc-v1 shows the status."""
        fields = "; ".join(field.text for field in self.fields)
        return f"{grammar.PREFIX}{self.name}" + (f" {fields}" if fields else "") + "\n"

    def print_format(self, profile: Profile) -> str:
        """The print fmt of `format`."""
        return definition.print_format(self.fields, profile)

    @property
    def deletable(self) -> bool:
        """user_event_last_ref(): only the self reference is left.

        An auto-delete event without references holds one for the work that removes it.
        """
        return self.self_reference and self.references == 0


class EventTable:
    """All user events, in order of creation, which is the order of dynamic_events."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.maximum = DEFAULT_MAX_EVENTS
        self.multi_id = 0
        # Whether tracefs creates the directories of new events.
        self.creates_directories = True
        # The id of the first event, once a case has read it while the event was the only one.
        self.first_id: int | None = None
        # The serial of the first event that was created while another one waited for its removal:
        # which ids it and later ones reuse is unknown.
        self.ids_unknown_since: int | None = None
        # The serial of the event that has the id of a removed one, None for no event, as far as
        # reads have shown that.
        self.reused: dict[int, int | None] = {}
        #: The serial of the next event.
        self.created = 0
        self._ids_used = 0
        self._freed_ids: list[int] = []
        self._by_serial: dict[int, Event] = {}
        self._by_name: dict[str, list[Event]] = {}
        self._indexes = Indexes(profile)

    @property
    def events(self) -> list[Event]:
        """The events, oldest first."""
        return list(self._by_serial.values())

    def with_id(self, number: int) -> Event | None:
        """The event that has an id at present.

        Raises NotModelled for the id of a removed event if another event may have it.
        """
        found = next((each for each in self._by_serial.values() if each.id == number), None)
        if found is not None or self.ids_unknown_since is None:
            return found
        serials = self.may_have(number)
        if len(serials) > 1:
            raise NotModelled("which event has the id of a removed one: settle before you register")
        return None if serials[0] is None else self._by_serial[serials[0]]

    def may_have(self, number: int) -> list[int | None]:
        """The serials of the events that may have the id of a removed one, None for no event."""
        serial = self.reused.get(number)
        if number in self.reused and (serial is None or serial in self._by_serial):
            return [serial]
        since, taken = self.ids_unknown_since, self.reused.values()
        later = (each for each in self._by_serial if since is not None and each >= since)
        return [None, *(each for each in later if each not in taken)]

    def find(self, serial: int) -> Event | None:
        """The event with a serial, None if it was removed."""
        return self._by_serial.get(serial)

    def tracepoint(self, system: str, name: str) -> Event:
        """The event of a directory in events/.

        Raises Errno: ENOENT, or ENAMETOOLONG where simple_lookup() looks for it.
        """
        if len(name) > NAME_MAX and not self.profile.has("directories_of_any_name"):
            raise Errno("ENAMETOOLONG")
        for event in self._by_serial.values():
            if event.system == system and event.tracepoint == name and "/" not in name:
                if not event.has_directory:
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
        """Remove an event and free its index and id."""
        del self._by_serial[event.serial]
        self._by_name[event.name].remove(event)
        if self.ids_unknown_since is None:
            heappush(self._freed_ids, event.id)
        self._indexes.free(event.index)

    def register(self, raw: str, flags: int, *, capable: bool) -> Event:
        """user_event_parse(): find or create the event of a registration string.

        Raises Errno and RawReturn in the kernel's order of checks.
        """
        command = Command.parse(raw)
        if self.profile.has("text_flags_refused"):
            refused_flags = flags != 0 and not self.profile.has("persist")
            if command.flags is not None or refused_flags:
                raise Errno("EINVAL", "flags after the colon of the name")
        if not is_file_name(command.name) and self.profile.fixed("event-name-slash"):
            raise Errno("EINVAL", f"no directory can be called {command.name!r}")
        if flags & USER_EVENT_REG_PERSIST and not capable:
            raise Errno("EPERM", "USER_EVENT_REG_PERSIST needs CAP_PERFMON")
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
            same_text = event.arguments == command.arguments
            if same_text and self.profile.fixed("definition-differs-from-itself"):
                return event
            if not multi:
                raise Errno("EADDRINUSE", f"{command.name} exists with other fields")
        return None

    def _create(self, command: Command, flags: int, *, capable: bool) -> Event:
        tracepoint = command.name
        if flags & USER_EVENT_REG_MULTI_FORMAT:
            # user_event_set_tp_name() runs before the fields are parsed, so a refused event uses up
            # an id.
            tracepoint = f"{command.name}.{self.multi_id:x}"
            self.multi_id += 1
        # The index is found before the fields are parsed and taken after the last check.
        index = self._indexes.lowest() if self.profile.has("status_page") else 0
        fields = definition.parse_fields(command.arguments, self.profile)
        if self.profile.has("remote_enable") and len(self._by_serial) >= self.maximum:
            raise Errno("EMFILE", f"there are {self.maximum} events (user_events_max)")
        if self.first_id is not None and len(self._by_serial) > _LAST_ID - self.first_id:
            # trace_output.c:register_trace_event(): user events share the ids with all events of
            # the kernel.
            raise Errno("ENODEV")
        persistent = bool(flags & USER_EVENT_REG_PERSIST) or not self.profile.has("auto_delete")
        event = Event(self.created, command.name, fields, flags, tracepoint, persistent)
        event.arguments = command.arguments
        event.index = index
        if not self.profile.has("bpf_iter_ignored"):
            event.bpf_iter = "BPF_ITER" in (command.flags or "").split(",")
        # tracefs creates the directory with the credentials of the caller.
        allowed = capable or self.profile.has("events_made_as_root")
        event.has_directory = allowed and self.creates_directories
        self._add(event)
        return event

    def _take_id(self) -> int:
        """trace_output.c:register_trace_event(): the lowest free id, or a new one."""
        if self._freed_ids and self.profile.has("ids_reused"):
            return heappop(self._freed_ids)
        self._ids_used += 1
        return _FIRST_ID + self._ids_used

    def forget_ids(self, since: int) -> None:
        """Forget which ids events from a serial on have."""
        self.ids_unknown_since = since
        self._ids_used, self._freed_ids = 0, []
        for event in self._by_serial.values():
            if event.serial >= since:
                event.id = _UNKNOWN_ID + event.serial

    def _add(self, event: Event) -> None:
        known = self.ids_unknown_since is None
        event.id = self._take_id() if known else _UNKNOWN_ID + event.serial
        # It may have any id that no event had.
        self.reused = {id: serial for id, serial in self.reused.items() if serial is not None}
        self.created += 1
        self._by_serial[event.serial] = event
        self._by_name.setdefault(event.name, []).append(event)
        self._indexes.take(event.index)

    def free(self, event: Event, *, capable: bool) -> None:
        """user_event_free(): EBUSY comes before EPERM."""
        if event.perf_count and not self.profile.has("perf_sink"):
            raise NotModelled("deleting an event with a perf event, without the perf probe")
        held = event.eprobe_count and self.profile.fixed("eprobe-event-freed")
        if held or not event.deletable:
            raise Errno("EBUSY", f"{event.name} is in use: registered, enabled or open")
        if event.flags & USER_EVENT_REG_PERSIST and not capable:
            raise Errno("EPERM", "deleting a persistent event needs CAP_PERFMON")
        self.remove(event)


def is_file_name(name: str) -> bool:
    """Whether a directory can have the name of an event."""
    return name not in ("", ".", "..") and "/" not in name
