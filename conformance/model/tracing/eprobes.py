"""Eprobes on user events, created through dynamic_events.

Source: trace_eprobe.c; trace_probe.c:traceprobe_parse_event_name.
"""

from __future__ import annotations

import re

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.event_file import Trigger
from conformance.model.state.events import Event
from conformance.model.state.namespaces import TRACEFS
from conformance.model.state.probes import GROUP, NUMBER_TYPE, STRING, Eprobe, ProbeArgument
from conformance.model.state.world import World
from conformance.model.text import filter_parser, filters
from conformance.model.tracing import triggers

_CREATE = re.compile(r"e:(\w+)/(\w+) (\w+)\.(\S+)((?: \w+=\$\w+(?::\w+)?)*)(?: if (.+))?")
_ARGUMENT = re.compile(r"(\w+)=(\$(\w+)(?::(\w+))?)")
_FILE = re.compile(rf"{TRACEFS}/events/{GROUP}/(\w+)/(\w+)")
# is_good_name(): names that an eprobe accepts; tracefs is less strict.
_GOOD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULT_TYPE = "x64"
# MAX_ARG_NAME_LEN; names of events may have twice as many characters.
_MAX_NAME = 32


def probe_of_enable(world: World, local: str) -> Eprobe | None:
    """The eprobe whose `enable` a path is, None for other files.

    Raises Errno("ENOENT") in the directory of no probe.
    """
    found = _FILE.fullmatch(local)
    if found is None or found[1] in world.kprobes:
        return None
    probe = world.eprobes.get(found[1])
    if probe is None:
        raise Errno("ENOENT")
    return probe if found[2] == "enable" else None


def create(world: World, command: str) -> None:
    """__trace_eprobe_create().  Raises Errno."""
    found = _CREATE.fullmatch(command.rstrip())
    if found is None:
        raise NotModelled(f"the probe {command!r}")
    group, name, system, event_name, arguments, condition = found.groups()
    if group != GROUP or name in world.eprobes:
        raise NotModelled("an eprobe of another group, or a second one with the same name")
    found_arguments = _ARGUMENT.findall(arguments)
    _check_names(name, event_name, [each[0] for each in found_arguments])
    # trace_probe_log_err(), unless it succeeds.
    unknown, world.top.error_log_unknown = world.top.error_log_unknown, True
    if not _GOOD_NAME.fullmatch(event_name):
        raise Errno("EINVAL")
    try:
        event = world.table.tracepoint(system, event_name)
    except Errno:
        raise Errno("ENODEV") from None
    filter_ = None
    if condition and world.profile.has("eprobe_conditions"):
        try:
            filter_ = filter_parser.parse(condition, event.fields, world.profile)
        except Errno:
            raise Errno("EINVAL") from None
    parsed = tuple(_argument(world, event, *each) for each in found_arguments)
    if condition and filter_ is None:
        # traceprobe_parse_probe_arg(): the word `if` is an argument that fetches nothing.
        raise Errno("EINVAL")
    world.top.error_log_unknown = unknown
    source = f"{system}.{event_name}"
    event.eprobe_count += 1
    world.eprobes[name] = Eprobe(name, event.serial, source, parsed, filter_, world.table.created)


def _check_names(name: str, source: str, arguments: list[str]) -> None:
    """Raise NotModelled for names that traceprobe_parse_probe_arg() and others may refuse."""
    names = [name, *arguments]
    plain = all(_GOOD_NAME.fullmatch(each) and not each.startswith("common_") for each in names)
    short = max(len(name), len(source), *map(len, arguments), 0) < _MAX_NAME
    if not plain or not short or len(set(arguments)) < len(arguments):
        raise NotModelled(f"the names in the eprobe {name!r}")


def _argument(
    world: World, event: Event, name: str, text: str, field: str, type_text: str
) -> ProbeArgument:
    found = filters.find_own_field(event.fields, field)
    if found is None:
        raise Errno("EINVAL" if world.profile.has("eprobe_fields_parsed") else "ENOENT")
    is_text = filters.is_string(found) and world.profile.has("remote_enable")
    type_ = type_text or _DEFAULT_TYPE
    if is_text != (type_ == STRING) or (type_ != STRING and not NUMBER_TYPE.fullmatch(type_)):
        raise NotModelled(f"a field {found.type} fetched as {type_}")
    if not is_text and found.size not in filters.INTEGER_SIZES:
        raise NotModelled(f"a field of {found.size} bytes fetched")
    return ProbeArgument(name, text, found, type_)


def set_enabled(world: World, probe: Eprobe, instance: str, *, on: bool) -> None:
    """enable_eprobe(), disable_eprobe(): a trigger on the event in an instance."""
    if on == (instance in probe.enabled):
        return
    file = world.event(probe.source).file_in(instance)
    # enable_trace_eprobe() returns before it adds the trigger of a second instance, and
    # disable_trace_eprobe() removes that of the last one, which may not have any.
    each_has_one = world.profile.fixed("eprobe-two-instances")
    if on:
        if each_has_one or not probe.enabled:
            trigger = Trigger("eprobe", filter=probe.filter, eprobe=probe)
            triggers.add(world, file, trigger, last=True)
        probe.enabled.add(instance)
        probe.was_enabled.add(instance)
    else:
        probe.enabled.remove(instance)
        found = [each for each in file.triggers if each.eprobe is probe]
        if found and (each_has_one or not probe.enabled):
            triggers.remove(world, file, found[0])


def matches(world: World, probe: Eprobe, tokens: list[str]) -> bool:
    """eprobe_dyn_event_match(): the event and the first arguments."""
    if not tokens:
        return True
    system, separator, name = re.sub("[/.]", " ", tokens[0], count=1).partition(" ")
    arguments = [f"{each.name}={each.text}" for each in probe.arguments]
    own_system, _, own_name = probe.source_name.partition(".")
    if not world.profile.has("eprobe_system_matched") and own_system.startswith(system):
        own_system = system
    is_on_it = bool(separator) and (system, name) == (own_system, own_name)
    return is_on_it and tokens[1:] == arguments[: len(tokens) - 1]


def delete(world: World, probe: Eprobe) -> None:
    """eprobe_dyn_event_release().  Raises Errno("EBUSY") while enabled."""
    if probe.enabled:
        raise Errno("EBUSY")
    del world.eprobes[probe.name]
    world.reset_later(probe.was_enabled)
    event = world.table.find(probe.source)
    if event is not None:
        event.eprobe_count -= 1
