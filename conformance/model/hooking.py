"""The files with which tracers say what is to become of records: of events, systems, probes.

Source: trace_events.c:event_filter_write, subsystem_filter_write; trace.c:tracing_snapshot_write,
tracing_err_log_open.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from conformance.abi import grammar
from conformance.model import definition, eprobes, event_state, histograms, triggers
from conformance.model import trigger_commands as commands

if TYPE_CHECKING:
    from conformance.model.events import Event
    from conformance.model.world import World

_TRACEFS = "/sys/kernel/tracing"
SNAPSHOT = f"{_TRACEFS}/snapshot"
ERROR_LOG = f"{_TRACEFS}/error_log"
# TRACING_LOG_ERRS_MAX
_MOST_ERRORS = 8
_SYSTEM_FILTER = re.compile(rf"{_TRACEFS}/events/({grammar.SYSTEM}|{grammar.MULTI_SYSTEM})/filter")


def truncate(world: World, path: str, found: tuple[Event, str] | None) -> None:
    """What opening a file for truncation does; ``found`` is the event it is of, and its name."""
    if found is not None and found[1] == "trigger":
        commands.remove_all(world, found[0])
    if path == ERROR_LOG:
        world.errors.clear()


def event_text(event: Event, file: str) -> str | None:
    """The text of a file of an event, None for one that is not of this module."""
    match file:
        case "filter":
            return f"{event.file.shown}\n"
        case "trigger":
            return triggers.shown(event)
        case "hist":
            return histograms.shown(event)
    return None


def write_event(world: World, event: Event, file: str, text: str) -> bool:
    """Write a file of an event; False for one that is not of this module."""
    if file == "filter":
        event_state.set_filter(world, event, text)
    elif file == "trigger":
        commands.command(world, event, text)
    return file in ("filter", "trigger")


def read(world: World, path: str) -> str | None:
    """The text of another file, None for one that is not of this module."""
    if path == ERROR_LOG:
        return "".join(world.errors[-_MOST_ERRORS:])
    system = _SYSTEM_FILTER.fullmatch(path)
    if system is not None:
        event_state.events_of(world, system[1])
        return event_state.SYSTEM_FILTER
    probe = eprobes.at(world, path)
    if probe is not None and probe[1] == "enable":
        return "1\n" if probe[0].enabled else "0\n"
    return None


def write(world: World, path: str, text: str, flags: int) -> bool:
    """Write another file; False for one that is not of this module."""
    system = _SYSTEM_FILTER.fullmatch(path)
    probe = eprobes.at(world, path)
    if system is not None:
        event_state.set_system_filter(world, system[1], text)
    elif probe is not None and probe[1] == "enable":
        eprobes.switch(world, probe[0], on=definition.parse_unsigned(text, 10) != 0)
    elif path == SNAPSHOT:
        _set_snapshot(world, definition.parse_unsigned(text, 10))
    else:
        # What is written to error_log means nothing; opening it did.
        return path == ERROR_LOG and bool(flags & os.O_TRUNC)
    return True


def _set_snapshot(world: World, wanted: int) -> None:
    """tracing_snapshot_write(): free the spare buffer, swap it with the other, or clear it."""
    if wanted == 0:
        world.top.snapshot = None
    elif wanted == 1:
        world.top.swap()
    elif world.top.snapshot is not None:
        world.top.snapshot.clear()
