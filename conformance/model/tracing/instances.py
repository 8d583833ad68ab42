"""tracefs instances: buffers of their own, and who records in them.

Source: trace.c:instance_mkdir, instance_rmdir, __remove_instance, tracing_open_file_tr;
fs/tracefs/inode.c:tracefs_syscall_mkdir, tracefs_syscall_rmdir; fs/namei.c:vfs_mkdir, vfs_rmdir.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from conformance.model.answers import Answer
from conformance.model.errors import Errno
from conformance.model.state.namespaces import CONFIDENTIALITY
from conformance.model.state.process import Process
from conformance.model.state.trace_instance import TOP, Instance
from conformance.model.state.world import World
from conformance.ops import tracing
from conformance.ops.syscalls import Operation

_TRACEFS = "/sys/kernel/tracing"
_DIRECTORY = f"{_TRACEFS}/instances"
_PATH = re.compile(rf"{_DIRECTORY}/([^/]+)(/.+)?")
# What there is at the top only.
_OF_THE_SYSTEM = ("user_events_data", "user_events_status", "user_events_mmap", "dynamic_events")


def locate(world: World, path: str) -> tuple[str, str]:
    """The instance that a path leads to, and the path it would have at the top.

    Raises Errno("ENOENT") for an instance that is not there, and for what instances have not.
    """
    found = _PATH.fullmatch(path)
    if found is None or found[2] is None:
        return TOP, path
    if found[1] not in world.instances or found[2][1:] in _OF_THE_SYSTEM:
        raise Errno("ENOENT")
    return found[1], _TRACEFS + found[2]


def reset_after_deletion(world: World) -> None:
    """tracing_reset_all_online_cpus(): where an event that is gone was ever enabled."""
    for instance in world.instances.values():
        if instance.clear_trace is None and instance.records:
            instance.unknown_because = "an event was deleted through dynamic_events"
        elif instance.clear_trace:
            instance.reset()
        instance.clear_trace = False


def make_directory(world: World, operation: tracing.MakeDirectory) -> Answer:
    """mkdir(2) below tracefs: only instances are made that way."""
    name = _checked(world, operation)
    if name in world.instances:
        raise Errno("EEXIST")
    if world.tracefs_readonly:
        raise Errno("EROFS")
    if world.lockdown >= CONFIDENTIALITY:
        # tracefs_create_dir() gives no reason, trace_array_create_dir() gives this one.
        raise Errno("EINVAL")
    world.instances[name] = Instance(first_event=world.table.created)
    return Answer(0)


def remove_directory(world: World, operation: tracing.RemoveDirectory) -> Answer:
    """rmdir(2) below tracefs: nobody listens for the instance any more."""
    name = _checked(world, operation)
    if world.tracefs_readonly:
        raise Errno("EROFS")
    if name not in world.instances:
        raise Errno("ENOENT")
    if _is_open(world, name) or _keeps_variables(world, name):
        raise Errno("EBUSY")
    for event in world.table.events:
        # clear_event_triggers(): what they are on, and what they aim at, is the instance's own.
        event.files.pop(name, None)
        world.set_tracer(event, name, on=False)
        event.was_enabled.discard(name)
    for each in world.synthetic_events:
        each.enabled.discard(name)
    del world.instances[name]
    return Answer(0)


def _checked(world: World, operation: tracing.MakeDirectory | tracing.RemoveDirectory) -> str:
    """The name of the instance that a path means.

    Raises Errno("EPERM") for directories of any other kind, which have no mkdir and no rmdir.
    """
    if world.process(operation.actor).uid != 0:
        raise Errno("EACCES")
    found = _PATH.fullmatch(operation.path)
    if found is None or found[2] is not None:
        raise Errno("EPERM")
    return found[1]


def _is_open(world: World, name: str) -> bool:
    """Whether a process has a file of an instance open (tr->ref, tr->trace_ref)."""
    start = f"{_DIRECTORY}/{name}/"
    files = (file for each in world.processes.values() for file in each.slots.values())
    return any(file.path.startswith(start) for file in files)


def _keeps_variables(world: World, name: str) -> bool:
    """Whether a histogram of an instance has variables, or reads one (save_hist_vars)."""
    files = (event.files.get(name) for event in world.table.events)
    found = [trigger.histogram for file in files if file is not None for trigger in file.triggers]
    return any(each is not None and (each.table.variables or each.references) for each in found)


def actor_of(world: World, process: Process) -> str:
    """The name of a process, "" for a thread that the kernel made beside it."""
    return next((actor for actor, each in world.processes.items() if each is process), "")


HANDLERS: dict[type[Operation], Callable[[World, Any], Answer]] = {
    tracing.MakeDirectory: make_directory,
    tracing.RemoveDirectory: remove_directory,
}
