"""Kprobes and eprobes.

Source: trace_kprobe.c; trace_eprobe.c; trace_probe.c:print_type functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from conformance.abi.profile import Profile
from conformance.model.errors import NotModelled
from conformance.model.state.trace_instance import Instance
from conformance.model.text.definition import Field
from conformance.model.text.filters import Filter

GROUP = "uevt"
NUMBER_TYPE = re.compile(r"([usx])(8|16|32|64)")
STRING = "string"


@dataclass(slots=True, eq=False)
class Kprobe:
    """A kprobe at the entry of the function."""

    name: str
    id: int


@dataclass(frozen=True, slots=True)
class ProbeArgument:
    """An argument of an eprobe: its name, the text of its source, and the field."""

    name: str
    text: str
    field: Field
    type: str

    def shown(self, record: bytes, profile: Profile) -> str:
        """print_type_*() of the fetched value (get_event_field)."""
        if self.type == STRING:
            text = _string(self.field, record, profile).decode("latin-1")
            return f'{self.name}="{text}"'
        kind = NUMBER_TYPE.fullmatch(self.type)
        assert kind is not None
        raw = record[self.field.offset : self.field.offset + self.field.size]
        signed = self.field.signed
        if len(raw) == 1 and signed and not profile.fixed("eprobe-sign"):
            signed = False
        value = int.from_bytes(raw, "little", signed=signed) % (1 << int(kind[2]))
        if kind[1] == "x":
            return f"{self.name}={value:#x}"
        if kind[1] == "s" and value >> (int(kind[2]) - 1):
            value -= 1 << int(kind[2])
        return f"{self.name}={value}"


def _string(field: Field, record: bytes, profile: Profile) -> bytes:
    """The text of a field."""
    start = field.offset
    if field.is_location:
        start = int.from_bytes(record[field.offset : field.offset + 2], "little")
    if field.is_relative:
        start += field.offset
        start += field.size if profile.fixed("eprobe-rel-loc") else 0
    text, end, _ = record[start:].partition(b"\0")
    if not end:
        raise NotModelled("a string without NUL in an eprobe")
    return text


@dataclass(slots=True, eq=False)
class Eprobe:
    """An eprobe: ``source`` is the serial of its event.

    ``after`` is the serial of the first event created later; ``enabled`` and ``was_enabled`` are
    instances.
    """

    name: str
    source: int
    source_name: str
    arguments: tuple[ProbeArgument, ...]
    filter: Filter | None
    after: int
    enabled: set[str] = field(default_factory=set)
    was_enabled: set[str] = field(default_factory=set)

    @property
    def definition(self) -> str:
        """The line in dynamic_events (eprobe_dyn_event_show)."""
        arguments = "".join(f" {each.name}={each.text}" for each in self.arguments)
        return f"e:{GROUP}/{self.name} {self.source_name}{arguments}\n"

    def hit(self, profile: Profile, instance: Instance, record: bytes) -> None:
        """__eprobe_trace_func()"""
        shown = "".join(f" {each.shown(record, profile)}" for each in self.arguments)
        instance.append_text(f"{self.name}: ({self.source_name}){shown}\n")
