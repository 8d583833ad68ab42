"""dynamic_events: its lines, and its commands.

Source: trace_events_user.c:user_event_show, user_event_create, user_event_match, user_event_free;
trace_dynevent.c:dyn_event_release, create_dyn_event; trace.c:trace_parse_run_command.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from conformance.abi import grammar
from conformance.abi import rfc_v1 as abi_rfc
from conformance.abi.profile import Generation
from conformance.abi.uapi import USER_EVENT_REG_PERSIST
from conformance.model.errors import Errno, NotModelled
from conformance.model.state import probes, synthetic_event
from conformance.model.state.events import Event
from conformance.model.state.process import Process
from conformance.model.state.world import World
from conformance.model.text import definition
from conformance.model.tracing import eprobes, instances, synthetic_events


def text(world: World) -> str:
    """One line for each event, oldest first."""
    if world.kprobes:
        raise NotModelled("dynamic_events with kprobes")
    page = world.status_page
    lines = [(float(event.serial), event.definition(page)) for event in world.table.events]
    lines += [(probe.after - 0.5, probe.definition) for probe in world.eprobes.values()]
    lines += [(each.after - 0.5, each.definition) for each in world.synthetic_events.values()]
    return "".join(line for _, line in sorted(lines, key=lambda each: each[0]))


def run_commands(world: World, process: Process, text: str, count: int | None = None) -> int:
    """Run the lines of one write until one fails; earlier commands stay done.

    ``count`` is the length of the write, if less of it is readable.
    """
    count = len(text) if count is None else count
    position = held = 0
    while position < count:
        line, newline, _ = text[position:held].partition("\n")
        if not newline and held < count:
            # The buffer is refilled from the start of the line: 4095 characters and a NUL.
            held = min(count, position + grammar.COMMAND_BUFFER - 1)
            if held > len(text):
                raise Errno("EFAULT")
            line, newline, _ = text[position:held].partition("\n")
        # A NUL in the text ends a line before its newline, as if the line were too long.
        if "\0" in line or (not newline and held < count):
            raise Errno("EINVAL")
        _run_command(world, process, line.partition("#")[0])
        position += len(line) + len(newline)
    return count


def _run_command(world: World, process: Process, command: str) -> None:
    if command[:1] in ("-", "!"):
        _delete_command(world, process, command)
    elif (raw := _definition_in(world, command)) is not None:
        if not world.profile.has("lasting_events"):
            # user_event_create() sets the persist flag, which these releases refuse.
            raise Errno("EINVAL")
        flags = USER_EVENT_REG_PERSIST if world.profile.has("persist") else 0
        world.table.register(raw, flags, capable=process.credentials.perfmon)
    elif command.startswith("e:"):
        eprobes.create(world, command)
    elif command.startswith("s:"):
        synthetic_events.create(world, command)
    elif definition.split_arguments(command):
        raise Errno("EINVAL")
    # A line without a token is accepted: trace_probe.c:trace_probe_create() comes first, if kprobe,
    # uprobe or eprobe events are configured.


def _definition_in(world: World, command: str) -> str | None:
    """The definition in a create command, None for other commands."""
    prefix, skipped = grammar.PREFIX, definition.SPACES
    if world.profile.generation is Generation.RFC_V1:
        # The name begins right after the prefix, even with a space.
        prefix, skipped = abi_rfc.PREFIX, ""
    return command.removeprefix(prefix).lstrip(skipped) if command.startswith(prefix) else None


def _delete_command(world: World, process: Process, command: str) -> None:
    head, *tokens = definition.split_arguments(command)
    before, colon, target = head.partition(":")
    if not colon or (head.startswith("-") and before != "-"):
        raise Errno("EINVAL")
    system, slash, name = target.partition("/")
    if not slash:
        name = target
    if not name and not (slash and world.profile.has("probes_deleted_by_system")):
        raise Errno("EINVAL")
    found = _matching(world, process, system if slash else None, name, tokens)
    deleted = False
    try:
        # All that match, until one is busy.
        for _, free in sorted(found, key=lambda each: each[0]):
            free()
            deleted = True
        if not found:
            raise Errno("ENOENT")
    except Errno:
        if deleted or not world.profile.fixed("failed-delete-clears-buffers"):
            instances.reset_after_deletion(world)
        raise
    instances.reset_after_deletion(world)


def _matching(
    world: World, process: Process, system: str | None, name: str, tokens: list[str]
) -> list[tuple[float, Callable[[], None]]]:
    """The place in the list, and how it is freed, of each event that a command names.

    Without a system it may be of any kind; without a name it is every one of a group.
    """
    found: list[tuple[float, Callable[[], None]]] = []
    if system in (None, *_systems(world)):
        for event in world.table.events:
            if _matches(world, event, name, tokens):
                free = partial(world.delete, event, capable=process.credentials.perfmon)
                found.append((float(event.serial), free))
    if system in (None, probes.GROUP):
        if world.kprobes.keys() & {name} or (world.kprobes and not name):
            raise NotModelled("deleting a kprobe through dynamic_events")
        for probe in world.eprobes.values():
            if name in ("", probe.name) and eprobes.matches(world, probe, tokens):
                found.append((probe.after - 0.5, partial(eprobes.delete, world, probe)))
    if system in (None, synthetic_event.GROUP):
        for each in world.synthetic_events.values():
            if name in ("", each.name):
                found.append((each.after - 0.5, partial(synthetic_events.delete, world, each)))
    return found


def _systems(world: World) -> tuple[str, ...]:
    multi = world.profile.has("multi_format")
    return (grammar.SYSTEM, grammar.MULTI_SYSTEM) if multi else (grammar.SYSTEM,)


def _matches(world: World, event: Event, name: str, tokens: list[str]) -> bool:
    if event.name != name:
        return False
    if not world.profile.has("deletion_arguments_matched"):
        return True
    if not tokens and not world.profile.has("null_arguments_matched"):
        return True
    return definition.fields_match(event.fields, tokens, world.profile)


def release_all(world: World, process: Process) -> None:
    """Open dynamic_events with O_TRUNC: delete all events, or none if one is busy."""
    if world.eprobes or world.synthetic_events:
        raise NotModelled("truncation of dynamic_events with eprobes or synthetic events")
    try:
        if any(not event.deletable for event in world.table.events):
            raise Errno("EBUSY")
        for event in list(world.table.events):
            world.delete(event, capable=process.credentials.perfmon)
    finally:
        instances.reset_after_deletion(world)
