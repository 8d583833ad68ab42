"""Synthetic events: what histograms of user events record when they match.

Source: trace_events_synth.c, functions named where a rule is applied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.model.errors import Errno, NotModelled
from conformance.model.tracing import instances

if TYPE_CHECKING:
    from conformance.model.state.histogram_values import Value
    from conformance.model.state.world import World

GROUP = "synthetic"
_TYPE = re.compile(r"([us])(8|16|32|64)")
_STRING = "char[]"
_CREATE = re.compile(rf"s:(?:{GROUP}/)?(\w+) (\w+(?: \w+(?:\[\])?;? *)+)")
_FIELD = re.compile(r"([us](?:8|16|32|64)|char) (\w+(?:\[\])?)")
_FILE = re.compile(rf"/sys/kernel/tracing/events/{GROUP}/(\w+)/(\w+)")


@dataclass(frozen=True, slots=True)
class SyntheticField:
    """One field: a number of some size, or a string of any length."""

    type: str
    name: str

    def takes(self, kind: str, size: int, *, signed: bool) -> bool:
        """check_synth_field()"""
        if self.type == _STRING:
            return "char[" in kind
        found = _TYPE.fullmatch(self.type)
        assert found is not None
        fits = (int(found[2]) // 8, found[1] == "s") == (size, signed)
        return self.type == kind or fits

    def shown(self, value: Value) -> str:
        """print_synth_event(): small numbers lose their sign."""
        if isinstance(value, bytes):
            return f"{self.name}={value.decode('latin-1')}"
        found = _TYPE.fullmatch(self.type)
        assert found is not None
        bits = int(found[2])
        value %= 1 << bits
        if found[1] == "s" and bits >= 32 and value >> (bits - 1):
            value -= 1 << bits
        return f"{self.name}={value}"


@dataclass(slots=True, eq=False)
class Synthetic:
    """struct synth_event.  ``users`` counts the histograms that record it."""

    name: str
    fields: tuple[SyntheticField, ...]
    after: int
    users: int = 0
    enabled: set[str] = field(default_factory=set)
    was_enabled: set[str] = field(default_factory=set)

    @property
    def definition(self) -> str:
        """Its line in dynamic_events (synth_event_show)."""
        fields = "; ".join(f"{each.type} {each.name}" for each in self.fields)
        return f"s:{GROUP}/{self.name}\t{fields}\n"

    def occur(self, world: World, values: list[Value]) -> None:
        """trace_event_raw_event_synth(), in all instances that listen."""
        shown = " ".join(each.shown(value) for each, value in zip(self.fields, values, strict=True))
        for name in sorted(self.enabled):
            world.instances[name].record_text(f"{self.name}: {shown}\n")


def find(world: World, name: str) -> Synthetic | None:
    """A synthetic event by its name."""
    return next((each for each in world.synthetics if each.name == name), None)


def create(world: World, command: str) -> None:
    """__create_synth_event().  Raises Errno."""
    found = _CREATE.fullmatch(command.rstrip())
    fields = [] if found is None else found[2].split(";")
    parsed = [_FIELD.fullmatch(each.strip()) for each in fields]
    if found is None or not all(parsed):
        raise NotModelled(f"the synthetic event {command!r}")
    if find(world, found[1]) is not None:
        raise Errno("EEXIST")
    made = tuple(_made(each[1], each[2]) for each in parsed if each is not None)
    world.synthetics.append(Synthetic(found[1], made, world.table.created))


def _made(kind: str, name: str) -> SyntheticField:
    bare = name.removesuffix("[]")
    if (kind == "char") != (bare != name):
        raise NotModelled(f"the field {kind} {name}")
    return SyntheticField(_STRING if kind == "char" else kind, bare)


def delete(world: World, name: str) -> None:
    """synth_event_release().  Raises Errno: ENOENT, or EBUSY while it is used or listened to."""
    found = find(world, name)
    if found is None:
        raise Errno("ENOENT")
    if found.users or found.enabled:
        raise Errno("EBUSY")
    world.synthetics.remove(found)
    for instance in found.was_enabled & set(world.instances):
        world.instances[instance].clear_trace = True


def at(world: World, path: str) -> tuple[Synthetic, str, str] | None:
    """Event, file and instance of a path below events/synthetic, None for others."""
    instance, local = instances.locate(world, path)
    found = _FILE.fullmatch(local)
    if found is None:
        return None
    event = find(world, found[1])
    if event is None:
        raise Errno("ENOENT")
    return event, found[2], instance


def switch(event: Synthetic, instance: str, *, on: bool) -> None:
    """Listen to it in an instance, or stop."""
    if on:
        event.enabled.add(instance)
        event.was_enabled.add(instance)
    else:
        event.enabled.discard(instance)
