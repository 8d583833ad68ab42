"""Paths of files in the directories of user events."""

from __future__ import annotations

import re

from conformance.abi import grammar
from conformance.model.errors import Errno
from conformance.model.state.events import Event
from conformance.model.state.namespaces import TRACEFS
from conformance.model.state.world import World
from conformance.model.tracing import instances

_EVENT_FILE = re.compile(rf"{TRACEFS}/events/({grammar.SYSTEM}|{grammar.MULTI_SYSTEM})/(.+)/(\w+)")


def event_file(world: World, path: str) -> tuple[Event, str] | None:
    """The event and file name of a path in events/user_events*, None elsewhere.

    Raises Errno("ENOENT") for an unknown event.
    """
    found = _EVENT_FILE.fullmatch(instances.locate(world, path)[1])
    if found is None:
        return None
    name = found[2].encode().decode("latin-1")
    return world.table.tracepoint(found[1], name), found[3]


def event_at(world: World, path: str) -> Event | None:
    """The event of a path, None for other files and unknown events."""
    try:
        found = event_file(world, path)
    except Errno:
        return None
    return None if found is None else found[0]


def is_first_id(world: World, path: str) -> bool:
    """Whether a path is the `id` of the only event that was ever created."""
    found = _EVENT_FILE.fullmatch(path)
    return found is not None and found[3] == "id" and world.table.created == 1


def event_file_name(local: str) -> str:
    """The file name of a path in an event's directory, "" elsewhere; the event may be removed."""
    found = _EVENT_FILE.fullmatch(local)
    return "" if found is None else found[3]


def shows_id(world: World, path: str) -> bool:
    """Whether a path is the `format` of an event, which shows the id."""
    return event_file_name(instances.locate(world, path)[1]) == "format"
