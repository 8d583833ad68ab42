"""The files with which tracers say what is to become of records: of events, systems, probes.

Source: trace_events.c:event_filter_write, subsystem_filter_write; trace.c:tracing_snapshot_write,
tracing_err_log_open.
"""

from __future__ import annotations

import os
import re

from conformance.abi import grammar
from conformance.model.errors import NotModelled
from conformance.model.state.event_file import EventFile
from conformance.model.state.events import Event
from conformance.model.state.trace_instance import Instance
from conformance.model.state.world import World
from conformance.model.text.numbers import parse_unsigned
from conformance.model.tracing import (
    eprobes,
    event_files,
    histogram_file,
    instances,
    synthetic_events,
    triggers,
)
from conformance.model.tracing import trigger_file as commands

_TRACEFS = "/sys/kernel/tracing"
SNAPSHOT = f"{_TRACEFS}/snapshot"
ERROR_LOG = f"{_TRACEFS}/error_log"
# TRACING_LOG_ERRS_MAX
_MOST_ERRORS = 8
_SYSTEM_FILTER = re.compile(rf"{_TRACEFS}/events/({grammar.SYSTEM}|{grammar.MULTI_SYSTEM})/filter")


def truncate(world: World, path: str, found: tuple[Event, str] | None) -> None:
    """What opening a file for truncation does; ``found`` is the event it is of, and its name."""
    instance, local = instances.locate(world, path)
    if found is not None and found[1] == "trigger":
        commands.remove_all(world, found[0].file_in(instance))
    if local == ERROR_LOG:
        world.instances[instance].error_log.clear()
        world.instances[instance].error_log_unknown = False


def event_text(hooks: EventFile, file: str) -> str | None:
    """The text of a file of an event, None for one that is not of this module."""
    match file:
        case "filter":
            return f"{hooks.filter_text}\n"
        case "trigger":
            return triggers.shown(hooks)
        case "hist":
            return histogram_file.shown(hooks)
    return None


def write_event(world: World, event: Event, hooks: EventFile, file: str, text: str) -> bool:
    """Write a file of an event; False for one that is not of this module."""
    if file == "filter":
        event_files.set_filter(world, event, hooks, text)
    elif file == "trigger":
        commands.command(world, event, hooks, text)
    return file in ("filter", "trigger")


def read(world: World, path: str) -> str | None:
    """The text of another file, None for one that is not of this module."""
    instance, local = instances.locate(world, path)
    if local == ERROR_LOG:
        if world.instances[instance].error_log_unknown:
            raise NotModelled("error_log after a trigger whose condition is wrong")
        return "".join(world.instances[instance].error_log[-_MOST_ERRORS:])
    system = _SYSTEM_FILTER.fullmatch(local)
    if system is not None:
        event_files.events_of(world, system[1])
        return event_files.SYSTEM_FILTER
    made = synthetic_events.at(world, path)
    if made is not None and made[1] == "enable":
        return "1\n" if made[2] in made[0].enabled else "0\n"
    probe = eprobes.at(world, local)
    if probe is not None and probe[1] == "enable":
        return "1\n" if instance in probe[0].enabled else "0\n"
    return None


def write(world: World, path: str, text: str, flags: int) -> bool:
    """Write another file; False for one that is not of this module."""
    instance, local = instances.locate(world, path)
    system = _SYSTEM_FILTER.fullmatch(local)
    probe = eprobes.at(world, local)
    made = synthetic_events.at(world, path)
    if system is not None:
        event_files.set_system_filter(world, instance, system[1], text)
    elif probe is not None and probe[1] == "enable":
        on = parse_unsigned(text, 10) != 0
        eprobes.switch(world, probe[0], instance, on=on)
    elif made is not None and made[1] == "enable":
        synthetic_events.switch(made[0], made[2], on=parse_unsigned(text, 10) != 0)
    elif local == SNAPSHOT:
        _set_snapshot(world.instances[instance], parse_unsigned(text, 10))
    else:
        # What is written to error_log means nothing; opening it did.
        return local == ERROR_LOG and bool(flags & os.O_TRUNC)
    return True


def _set_snapshot(instance: Instance, wanted: int) -> None:
    """tracing_snapshot_write(): free the spare buffer, swap it with the other, or clear it."""
    if wanted == 0:
        instance.snapshot = None
    elif wanted == 1:
        instance.take_snapshot()
    elif instance.snapshot is not None:
        instance.snapshot.clear()
