"""Enabling, soft mode and filters of events.

User events in every instance, kernel events in the top instance.
Source: trace_events.c:__ftrace_event_enable_disable, event_enable_read;
trace_events_filter.c:apply_event_filter.
"""

from __future__ import annotations

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.event_file import NO_FILTER, EventFile
from conformance.model.state.events import Event
from conformance.model.state.trace_instance import TOP
from conformance.model.state.world import World
from conformance.model.text import filter_parser
from conformance.model.text.definition import SPACES
from conformance.model.text.filter_parser import FilterError

# memdup_user_nul(): the limit for `filter` and `trigger`.
MAX_TEXT = 4095
_NOT_IN_ALL = "Couldn't find or set field in one of a subsystem's events"
_GLOBAL_FILTER = (
    "### global filter ###\n"
    "# Use this to set filters for multiple events.\n"
    "# Only events with the given fields will be affected.\n"
    "# If no events are modified, an error message will be displayed here\n"
)


def kernel_file(world: World, event: str, instance: str = TOP) -> EventFile:
    """The file of a kernel event, system:name."""
    if instance != TOP:
        raise NotModelled(f"{event} in an instance")
    return world.kernel_files.setdefault(event, EventFile(event))


def enable(world: World, event: Event, instance: str, *, on: bool) -> None:
    """Write `enable` of an event; also called for a system and for set_event."""
    set_enabled(world, event.file_in(instance), on=on)


def set_enabled(world: World, file: EventFile, *, on: bool, soft: bool = False) -> None:
    """__ftrace_event_enable_disable(); ``soft`` changes soft mode."""
    if on and soft:
        file.sm_ref += 1
        if file.sm_ref > 1:
            return
        file.soft_disabled = not _is_registered(world, file)
    elif on:
        file.soft_disabled = False
    elif soft:
        file.sm_ref -= 1
        if file.sm_ref:
            return
    # An event that is enabled stays so when soft mode ends.
    enabled = on or (not file.soft_disabled if soft else bool(file.sm_ref))
    if not on:
        file.soft_disabled = bool(file.sm_ref)
    _register(world, file, on=enabled)


def _is_registered(world: World, file: EventFile) -> bool:
    if isinstance(file.event_key, str):
        return file.event_key in world.kernel_enabled
    return file.instance in world.event(file.event_key).tracers


def _register(world: World, file: EventFile, *, on: bool) -> None:
    if isinstance(file.event_key, int):
        world.set_tracer(world.event(file.event_key), file.instance, on=on)
    elif on:
        world.kernel_enabled.add(file.event_key)
    else:
        world.kernel_enabled.discard(file.event_key)


def enable_text(world: World, file: EventFile) -> str:
    """The text of `enable`: whether the event is recorded, and a star in soft mode."""
    records = _is_registered(world, file) and not file.soft_disabled
    return ("1" if records else "0") + ("*" if file.sm_ref or file.soft_disabled else "") + "\n"


def set_system_filter(world: World, instance: str, system: str, text: str) -> None:
    """apply_subsystem_event_filter(): filter all events of a system.

    Raises Errno("ENOENT") for a system without events, FilterError if no event takes the filter.
    """
    events = events_of(world, system)
    if not events:
        raise Errno("ENOENT")
    if len(text) > MAX_TEXT:
        raise Errno("EINVAL")
    text = _stripped(text)
    error = FilterError("EINVAL", _NOT_IN_ALL)
    applied = False
    for event in events:
        file = event.file_in(instance)
        try:
            _apply_filter(world, event, file, text)
            applied = True
        except FilterError:
            _show_error(world, file, error, text)
    world.system_filters.pop(system, None)
    if not applied and world.profile.fixed("system-filter-never-fails"):
        world.system_filters[system] = f"{error.shown(text)}\n"
        world.instances[instance].error_log.append(error.logged(text))
        raise error


def system_filter_text(world: World, system: str) -> str:
    """The text of `filter` of a system: the last error, or one that never changes.

    Raises Errno("ENOENT") for a system without events.
    """
    if not events_of(world, system):
        raise Errno("ENOENT")
    return world.system_filters.get(system, _GLOBAL_FILTER)


def set_filter(world: World, event: Event, file: EventFile, text: str) -> None:
    """apply_event_filter(): a refused filter removes the old one and is shown.

    Raises FilterError.
    """
    if len(text) > MAX_TEXT:
        raise FilterError("EINVAL")
    text = _stripped(text)
    try:
        _apply_filter(world, event, file, text)
    except FilterError as error:
        _show_error(world, file, error, text)
        raise


def events_of(world: World, system: str | None) -> list[Event]:
    """The user events in events/ of a system, or of all with None."""
    return [
        each for each in world.table.events if system in (None, each.system) and each.has_directory
    ]


def _stripped(text: str) -> str:
    """strstrip() cuts off the end in place, and only skips spaces at the start."""
    return text.partition("\0")[0].rstrip(SPACES)


def _apply_filter(world: World, event: Event, file: EventFile, text: str) -> None:
    file.filter = None
    if text.lstrip(SPACES) == "0":
        file.filter_text = NO_FILTER
        return
    file.filter = filter_parser.parse(text, event.fields, world.profile)
    file.filter_text = text


def _show_error(world: World, file: EventFile, error: FilterError, text: str) -> None:
    file.filter_text = error.shown(text)
    world.instances[file.instance].error_log.append(error.logged(text))
