"""rfc-v1: definitions of events, and the table of events.

Source: the patch named in ``conformance/abi/rfc_v1.py``, trace_events_user.c; errors while an
event is defined are handled by trace_events.c:event_define_fields and event_create_dir.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.abi import grammar, rfc_v1
from conformance.abi.profile import Profile
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.events import NAME_MAX, Event, EventTable, is_file_name
from conformance.model.state.status_page import StatusPage, used_by
from conformance.model.text.definition import Field
from conformance.model.text.numbers import parse_unsigned

_U32 = 1 << 32


@dataclass(frozen=True, slots=True)
class Definition:
    """The fields of an event, and its print fmt.

    ``exact`` means that every field has an offset; without one it is uninitialized.
    """

    fields: tuple[Field, ...] = ()
    print_fmt: str = rfc_v1.NO_PRINT_FMT
    exact: bool = True

    @classmethod
    def parse(cls, arguments: str | None) -> Definition:
        """user_event_parse_fields(): a field that cannot be parsed ends the parsing.

        The error is lost (event_define_fields).
        """
        fields: list[Field] = []
        print_fmt, exact = rfc_v1.NO_PRINT_FMT, True
        for piece in [] if arguments is None else arguments.split(rfc_v1.FIELD_SEPARATOR):
            columns = piece.split(rfc_v1.COLUMN_SEPARATOR)
            try:
                size, offset = _numbers(columns)
            except Errno:
                break
            type_, name = columns[: rfc_v1.SIZE_COLUMN]
            if type_ == rfc_v1.PRINT_FMT:
                print_fmt = name
                continue
            exact = exact and offset is not None
            # User space counts offsets from the payload, the kernel from the record.
            place = ((offset or 0) + grammar.TRACE_ENTRY_SIZE) % _U32
            fields.append(Field(type_, name, place, size))
        return cls(tuple(fields), print_fmt, exact)


def _numbers(columns: list[str]) -> tuple[int, int | None]:
    """user_event_parse_field(): size and offset in bytes, None without an offset.

    Raises Errno("EINVAL").
    """
    if len(columns) <= rfc_v1.SIZE_COLUMN:
        raise Errno("EINVAL")
    size = parse_unsigned(columns[rfc_v1.SIZE_COLUMN], 10)
    if len(columns) <= rfc_v1.OFFSET_COLUMN:
        return size, None
    return size, parse_unsigned(columns[rfc_v1.OFFSET_COLUMN], 10)


@dataclass(slots=True, eq=False)
class RfcEvent(Event):
    """An event of rfc-v1."""

    parsed: Definition = Definition()

    def definition(self, page: StatusPage | None) -> str:
        """user_event_show(): the fields last first, and the probes.

        A status that is not determined shows no probe.
        """
        assert page is not None
        fields = "".join(f";{field.type} {field.name}" for field in reversed(self.fields))
        used = used_by(page.byte(self.index))
        return f"{rfc_v1.PREFIX}{self.name}{fields}{f' ({used})' if used else ''}\n"

    def print_format(self, profile: Profile) -> str:
        """The print fmt of `format`."""
        if not self.parsed.exact:
            raise NotModelled("the offset of a field without one")
        return self.parsed.print_fmt


class RfcTable(EventTable):
    """All events, under the rules of rfc-v1."""

    def register(self, raw: str, flags: int, *, capable: bool) -> Event:
        """register_user_event(): a known name is found whatever its fields.  Raises Errno."""
        name, semicolon, arguments = raw.partition(rfc_v1.FIELD_SEPARATOR)
        for event in self.named(name):
            return event
        index = self._indexes.lowest()
        # tracefs creates the directory with the credentials of the caller; fields are parsed after
        # it.
        has_directory = capable and is_file_name(name) and len(name) <= NAME_MAX
        defined = Definition.parse(arguments if semicolon and has_directory else None)
        event = RfcEvent(
            serial=self.created,
            name=name,
            fields=defined.fields,
            flags=flags,
            tracepoint=name,
            self_reference=True,
            has_directory=has_directory,
            index=index,
            parsed=defined,
        )
        self._add(event)
        return event

    def free(self, event: Event, *, capable: bool) -> None:
        """destroy_user_event(): busy only while a probe is attached (probe_remove_event_call)."""
        if event.is_enabled:
            raise Errno("EBUSY")
        self.remove(event)
