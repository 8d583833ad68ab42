"""A synthetic event: its fields, and how a record of it is shown.

Source: trace_events_synth.c, functions named where a rule is applied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformance.abi.profile import Profile
from conformance.model.state.histogram_values import Value
from conformance.model.state.trace_instance import Instance

GROUP = "synthetic"
_TYPE = re.compile(r"([us])(8|16|32|64)")
STRING = "char[]"


@dataclass(frozen=True, slots=True)
class SyntheticField:
    """A field: a number, or a string of any length."""

    type: str
    name: str

    def takes(self, kind: str, size: int, *, signed: bool) -> bool:
        """check_synth_field()"""
        if self.type == STRING:
            return "char[" in kind
        found = _TYPE.fullmatch(self.type)
        assert found is not None
        fits = (int(found[2]) // 8, found[1] == "s") == (size, signed)
        return self.type == kind or fits

    def shown(self, value: Value, profile: Profile) -> str:
        """print_synth_event(), where 8-bit and 16-bit numbers lose their sign."""
        if isinstance(value, bytes):
            return f"{self.name}={value.decode('latin-1')}"
        found = _TYPE.fullmatch(self.type)
        assert found is not None
        bits = int(found[2])
        value %= 1 << bits
        negative = found[1] == "s" and value >> (bits - 1)
        if negative and (bits >= 32 or profile.fixed("synth-sign")):
            value -= 1 << bits
        return f"{self.name}={value}"


@dataclass(slots=True, eq=False)
class SyntheticEvent:
    """struct synth_event; ``users`` counts the histograms that generate it.

    ``after`` is the serial of the first user event created later.
    """

    name: str
    fields: tuple[SyntheticField, ...]
    after: int
    profile: Profile
    users: int = 0
    enabled: set[str] = field(default_factory=set)
    was_enabled: set[str] = field(default_factory=set)

    @property
    def definition(self) -> str:
        """The line in dynamic_events (synth_event_show)."""
        fields = "; ".join(f"{each.type} {each.name}" for each in self.fields)
        return f"s:{GROUP}/{self.name}\t{fields}\n"

    def record(self, instances: Mapping[str, Instance], values: Sequence[Value]) -> None:
        """trace_event_raw_event_synth(), in every instance that enables the event."""
        pairs = zip(self.fields, values, strict=True)
        shown = " ".join(each.shown(value, self.profile) for each, value in pairs)
        for name in sorted(self.enabled):
            instances[name].append_text(f"{self.name}: {shown}\n")
