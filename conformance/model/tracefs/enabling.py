"""Files that enable several events (`enable`, set_event) or limit tracing to processes.

Source: trace_events.c:system_enable_read, system_enable_write, __ftrace_set_clr_event_nolock,
ftrace_event_write, event_pid_write; trace.c:trace_get_user, trace_pid_write.
"""

from __future__ import annotations

import os
import re

from conformance.abi import grammar
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.events import Event
from conformance.model.state.namespaces import TRACEFS
from conformance.model.state.process import Process
from conformance.model.state.trace_instance import NO_PIDS, PIDS, TOP, Instance
from conformance.model.state.world import World
from conformance.model.text import definition
from conformance.model.text.numbers import parse_switch
from conformance.model.tracing import event_files, instances, kernel_events

SET_EVENT = f"{TRACEFS}/set_event"
_PID_LISTS = {f"{TRACEFS}/{name}": name for name in (PIDS, NO_PIDS)}
# The pid of init, which no case runs as.
_INIT = "1"
# EVENT_BUF_SIZE
_MAX_WORD = 127
_SYSTEMS = (grammar.SYSTEM, grammar.MULTI_SYSTEM)
_ENABLE = re.compile(rf"{TRACEFS}/events/(?:({'|'.join(_SYSTEMS)})/)?enable")
_NUMBER = re.compile(r"\+?\d\w*")
# trace_get_user(): what it skips, and what ends a word.
_WORD = re.compile(rf"[{definition.SPACES}]*([^{definition.SPACES}\0]*)")
_WORD_ENDS = re.compile(rf"[{definition.SPACES}\0]+")
# system_enable_read(): no event, none enabled, all enabled, some enabled.
_ENABLE_TEXT = {(): "?", (False,): "0", (True,): "1", (False, True): "X"}


def handles(world: World, path: str) -> bool:
    """Whether this module handles a path."""
    local = instances.locate(world, path)[1]
    return local in (SET_EVENT, *_PID_LISTS) or _ENABLE.fullmatch(local) is not None


def check_open(world: World, path: str, flags: int) -> None:
    """open(2) of such a file, with its effect under O_TRUNC."""
    name, local = instances.locate(world, path)
    found = _ENABLE.fullmatch(local)
    if found and found[1] and not event_files.events_of(world, found[1]):
        # The directory of a system exists while it has events.
        raise Errno("ENOENT")
    if not flags & os.O_TRUNC or flags & os.O_ACCMODE == os.O_RDONLY:
        return
    instance = world.instances[name]
    if local == SET_EVENT:
        for event in world.table.events:
            event_files.enable(world, event, name, on=False)
        if name == TOP:
            world.kernel_enabled.clear()
    elif local in _PID_LISTS:
        instance.pid_lists[_PID_LISTS[local]] = ()


def read(world: World, path: str) -> bytes | None:
    """The text of such a file; None for a list of pids."""
    name, local = instances.locate(world, path)
    instance = world.instances[name]
    if local in _PID_LISTS:
        return None if instance.pid_lists[_PID_LISTS[local]] else b""
    if local == SET_EVENT:
        return _enabled_text(world, name).encode("latin-1")
    return group_text(world, name, local)


def is_enable(local: str) -> bool:
    """Whether a path is the `enable` of all events or of a user event system."""
    return _ENABLE.fullmatch(local) is not None


def group_text(world: World, instance: str, local: str) -> bytes:
    """The text of such an `enable`."""
    system = _system_in(local)
    states = {instance in event.tracers for event in event_files.events_of(world, system)}
    if system is None:
        # Some kernel events are always disabled.
        states.add(False)
        if instance == TOP and world.kernel_enabled:
            states.add(True)
    return f"{_ENABLE_TEXT[tuple(sorted(states))]}\n".encode()


def set_group(world: World, instance: str, local: str, *, on: bool) -> None:
    """system_enable_write(): all present events of a system.

    Raises Errno("EINVAL") without any event.
    """
    system = _system_in(local)
    if system is None and on:
        raise NotModelled("enabling all kernel events")
    found = event_files.events_of(world, system)
    if system is not None and not found:
        raise Errno("EINVAL")
    for event in found:
        event_files.enable(world, event, instance, on=on)
    if system is None and instance == TOP:
        world.kernel_enabled.clear()


def _system_in(local: str) -> str | None:
    """The system of an `enable`, None for that of all events."""
    found = _ENABLE.fullmatch(local)
    assert found is not None
    return found[1]


def _enabled_text(world: World, name: str) -> str:
    """s_next(): events created after the instance come first, newest first."""
    if name == TOP and world.kernel_enabled:
        raise NotModelled("set_event with kernel events")
    first = world.instances[name].first_event
    older = [event for event in world.table.events if event.serial < first]
    newer = [event for event in world.table.events if event.serial >= first]
    enabled = (event for event in [*reversed(newer), *older] if name in event.tracers)
    return "".join(f"{event.system}:{event.tracepoint}\n" for event in enabled)


def write(world: World, path: str, text: str) -> int:
    """One write(2) to such a file."""
    name, local = instances.locate(world, path)
    if local == SET_EVENT:
        return _set_event(world, name, text)
    if not is_enable(local):
        return _add_pids(world.instances[name], local, text)
    set_group(world, name, local, on=parse_switch(text))
    return len(text)


def _add_pids(instance: Instance, local: str, text: str) -> int:
    """trace_pid_write(), for any text but pids of cases: all words, or none if one is refused."""
    words = [word for word in _WORD_ENDS.split(text) if word]
    for word in words:
        if not _NUMBER.fullmatch(word):
            raise Errno("EINVAL")
        if word != _INIT:
            raise NotModelled("the pid of another process")
    # Init, whatever PID namespace the writer is in.
    instance.pid_lists[_PID_LISTS[local]] += tuple(words)
    return len(text)


def _set_event(world: World, name: str, text: str) -> int:
    """ftrace_event_write(): handles the first word and the white space after it."""
    word, consumed = _first_word(text)
    if not word:
        return consumed
    if len(word) > _MAX_WORD:
        raise Errno("EINVAL")
    pattern = word.removeprefix("!")
    found = [event for event in world.table.events if _matches(event, pattern)]
    if not found:
        _check_kernel_events(pattern)
        raise Errno("EINVAL")
    for event in found:
        event_files.enable(world, event, name, on=pattern == word)
    return consumed


def _first_word(text: str) -> tuple[str, int]:
    """trace_get_user(): a word, and the number of characters consumed."""
    found = _WORD.match(text)
    assert found is not None
    return found[1], min(found.end() + 1, len(text))


def _matches(event: Event, pattern: str) -> bool:
    """__ftrace_set_clr_event_nolock(): SYSTEM:NAME, SYSTEM or NAME; a part may be a star."""
    system, colon, name = pattern.partition(":")
    if not colon:
        return pattern in (event.tracepoint, event.system)
    if system in ("", "*") and name in ("", "*"):
        raise NotModelled("all kernel events")
    return system in ("", "*", event.system) and name in ("", "*", event.tracepoint)


def _check_kernel_events(pattern: str) -> None:
    """Raise NotModelled for a pattern that matches kernel events."""
    known = {
        *kernel_events.KNOWN,
        *(name for names in kernel_events.KNOWN.values() for name in names),
    }
    if not known.isdisjoint(pattern.split(":")):
        raise NotModelled(f"enabling {pattern}")


def write_pid(world: World, process: Process, path: str, flags: int) -> None:
    """event_pid_write(): append the pid of the caller to a list."""
    if process.credentials.uid != 0:
        raise Errno("EACCES")
    check_open(world, path, flags)
    name, local = instances.locate(world, path)
    if local not in _PID_LISTS:
        raise NotModelled(f"a pid written to {path}")
    world.instances[name].pid_lists[_PID_LISTS[local]] += (process.tid,)
