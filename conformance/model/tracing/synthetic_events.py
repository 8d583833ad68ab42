"""Synthetic events: create, delete, enable.

Source: trace_events_synth.c, functions named where a rule is applied.
"""

from __future__ import annotations

import re

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.namespaces import TRACEFS
from conformance.model.state.synthetic_event import GROUP, STRING, SyntheticEvent, SyntheticField
from conformance.model.state.world import World

_CREATE = re.compile(rf"s:(?:{GROUP}/)?(\w+) (\w+(?: \w+(?:\[\])?;? *)+)")
_FIELD = re.compile(r"([us](?:8|16|32|64)|char) (\w+(?:\[\])?)")
_FILE = re.compile(rf"{TRACEFS}/events/{GROUP}/(\w+)/(\w+)")


def create(world: World, command: str) -> None:
    """__create_synth_event().  Raises Errno."""
    found = _CREATE.fullmatch(command.rstrip())
    fields = [] if found is None else found[2].split(";")
    parsed = [_FIELD.fullmatch(each.strip()) for each in fields]
    if found is None or not all(parsed):
        raise NotModelled(f"the synthetic event {command!r}")
    if found[1] in world.synthetic_events:
        # synth_err() logs it.
        world.top.error_log_unknown = True
        raise Errno("EEXIST")
    fields_ = tuple(_field(each[1], each[2]) for each in parsed if each is not None)
    event = SyntheticEvent(found[1], fields_, world.table.created, world.profile)
    world.synthetic_events[event.name] = event


def _field(kind: str, name: str) -> SyntheticField:
    bare = name.removesuffix("[]")
    if (kind == "char") != (bare != name):
        raise NotModelled(f"the field {kind} {name}")
    return SyntheticField(STRING if kind == "char" else kind, bare)


def delete(world: World, found: SyntheticEvent) -> None:
    """synth_event_release().  Raises Errno("EBUSY") while in use or enabled."""
    if found.users or found.enabled:
        raise Errno("EBUSY")
    del world.synthetic_events[found.name]
    world.reset_later(found.was_enabled)


def event_of_enable(world: World, local: str) -> SyntheticEvent | None:
    """The event whose `enable` a path is, None for other files.

    Raises Errno("ENOENT") in the directory of no event.
    """
    found = _FILE.fullmatch(local)
    if found is None:
        return None
    event = world.synthetic_events.get(found[1])
    if event is None:
        raise Errno("ENOENT")
    return event if found[2] == "enable" else None


def set_enabled(event: SyntheticEvent, instance: str, *, on: bool) -> None:
    """Enable or disable the event in an instance."""
    if on:
        event.enabled.add(instance)
        event.was_enabled.add(instance)
    else:
        event.enabled.discard(instance)
