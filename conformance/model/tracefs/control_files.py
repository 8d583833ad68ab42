"""Files that control recording: filters of systems, enable of probes, snapshot, error_log.

Source: trace_events.c:event_filter_write, subsystem_filter_write; trace.c:tracing_snapshot_write,
tracing_err_log_open.
"""

from __future__ import annotations

import os
import re

from conformance.abi import grammar
from conformance.model.errors import NotModelled
from conformance.model.state.events import Event
from conformance.model.state.namespaces import TRACEFS
from conformance.model.state.trace_instance import Instance
from conformance.model.state.world import World
from conformance.model.text.numbers import parse_switch, parse_written
from conformance.model.tracing import (
    eprobes,
    event_files,
    instances,
    synthetic_events,
    trigger_file,
)

TRACE = f"{TRACEFS}/trace"
SNAPSHOT = f"{TRACEFS}/snapshot"
ERROR_LOG = f"{TRACEFS}/error_log"
# TRACING_LOG_ERRS_MAX
_MAX_ERRORS = 8
_SYSTEM_FILTER = re.compile(rf"{TRACEFS}/events/({grammar.SYSTEM}|{grammar.MULTI_SYSTEM})/filter")


def truncate(world: World, path: str, found: tuple[Event, str] | None) -> None:
    """Open a file with O_TRUNC; ``found`` are event and file name of a path in events/."""
    instance, local = instances.locate(world, path)
    if found is not None and found[1] == "trigger":
        trigger_file.remove_all(world, found[0].file_in(instance))
    if local == ERROR_LOG:
        world.instances[instance].error_log.clear()
        world.instances[instance].error_log_unknown = False
    if local == TRACE:
        world.instances[instance].reset()


def read(world: World, path: str) -> str | None:
    """The text of any other file, None for files handled elsewhere."""
    instance, local = instances.locate(world, path)
    if local == ERROR_LOG:
        if world.instances[instance].error_log_unknown:
            raise NotModelled("error_log after a trigger with an invalid filter")
        return "".join(world.instances[instance].error_log[-_MAX_ERRORS:])
    system = _SYSTEM_FILTER.fullmatch(local)
    if system is not None:
        return event_files.system_filter_text(world, system[1])
    probe = synthetic_events.event_of_enable(world, local) or eprobes.probe_of_enable(world, local)
    if probe is None:
        return None
    return "1\n" if instance in probe.enabled else "0\n"


def write(world: World, path: str, text: str, flags: int) -> bool:
    """Write any other file; False for files handled elsewhere."""
    instance, local = instances.locate(world, path)
    system = _SYSTEM_FILTER.fullmatch(local)
    probe = eprobes.probe_of_enable(world, local)
    synthetic = synthetic_events.event_of_enable(world, local)
    if system is not None:
        event_files.set_system_filter(world, instance, system[1], text)
    elif probe is not None:
        eprobes.set_enabled(world, probe, instance, on=parse_switch(text))
    elif synthetic is not None:
        synthetic_events.set_enabled(synthetic, instance, on=parse_switch(text))
    elif local == SNAPSHOT:
        _set_snapshot(world.instances[instance], parse_written(text))
    else:
        # The text written to error_log is ignored; the open has cleared it.
        return local == ERROR_LOG and bool(flags & os.O_TRUNC)
    return True


def _set_snapshot(instance: Instance, value: int) -> None:
    """tracing_snapshot_write(): free, take or clear the snapshot."""
    if value == 1:
        instance.take_snapshot()
        return
    instance.clear_snapshot()
    if value == 0:
        instance.snapshot = None
