"""tracefs instances: mkdir, rmdir, paths.

Source: trace.c:instance_mkdir, instance_rmdir, __remove_instance, tracing_open_file_tr;
fs/tracefs/inode.c:tracefs_syscall_mkdir, tracefs_syscall_rmdir; fs/namei.c:vfs_mkdir, vfs_rmdir.
"""

from __future__ import annotations

import re

from conformance.model.errors import Errno
from conformance.model.state.namespaces import CONFIDENTIALITY, TRACEFS
from conformance.model.state.process import Process
from conformance.model.state.trace_instance import TOP, Instance
from conformance.model.state.world import World

_DIRECTORY = f"{TRACEFS}/instances"
# A file of one event that holds its instance only since "enable_file_holds_instance".
_OF_EVENT = re.compile(r".*/events/[^/]+/[^/]+/(enable|filter)")
# Their open(2) takes no reference.
_WITHOUT_REFERENCE = re.compile(r".*/events/[^/]+/[^/]+/(format|id|trigger)")
_PATH = re.compile(rf"{_DIRECTORY}/([^/]+)(/.+)?")
# Files that only the top instance has.
_TOP_ONLY = ("user_events_data", "user_events_status", "user_events_mmap", "dynamic_events")


def locate(world: World, path: str) -> tuple[str, str]:
    """The instance of a path, and the same path in the top instance.

    Raises Errno("ENOENT") for an unknown instance or a file that instances lack.
    """
    found = _PATH.fullmatch(path)
    if found is None or found[2] is None:
        return TOP, path
    if found[1] not in world.instances or found[2][1:] in _TOP_ONLY:
        raise Errno("ENOENT")
    return found[1], TRACEFS + found[2]


def reset_after_deletion(world: World) -> None:
    """tracing_reset_all_online_cpus(), where an instance has ever enabled a removed event.

    Its snapshot buffer is reset as well.
    """
    if not world.profile.has("buffers_reset_with_events"):
        return
    for instance in world.instances.values():
        if instance.clear_trace is None:
            why = "an event was deleted through dynamic_events"
            if instance.records:
                instance.unknown_because = why
            if instance.snapshot:
                instance.snapshot_unknown_because = why
        elif instance.clear_trace:
            instance.reset()
            instance.clear_snapshot()
        instance.clear_trace = False


def make_directory(world: World, process: Process, path: str) -> None:
    """mkdir(2) in tracefs, which only creates instances."""
    name = _instance_name(process, path)
    if name in world.instances:
        raise Errno("EEXIST")
    if world.tracefs_readonly:
        raise Errno("EROFS")
    if world.lockdown >= CONFIDENTIALITY:
        # trace_array_create_dir(): no directory, or no files in it.  "tracefs: Add missing lockdown
        # check to tracefs_create_dir()" is in the same releases as the switch, and a probe of its
        # own would lose its guest.
        raise Errno("EINVAL" if world.profile.has("enable_file_holds_instance") else "ENOMEM")
    world.instances[name] = Instance(first_event=world.table.created)


def remove_directory(world: World, process: Process, path: str) -> None:
    """rmdir(2) in tracefs: disables all events of the instance."""
    name = _instance_name(process, path)
    if world.tracefs_readonly:
        raise Errno("EROFS")
    if name not in world.instances:
        raise Errno("ENOENT")
    if _is_open(world, name) or _has_variables(world, name):
        raise Errno("EBUSY")
    for event in world.table.events:
        # clear_event_triggers(): triggers and their targets belong to the instance.
        event.files.pop(name, None)
        world.set_tracer(event, name, on=False)
        event.was_enabled.discard(name)
    for each in world.synthetic_events.values():
        each.enabled.discard(name)
    del world.instances[name]
    # tracefs_d_iput() drops no reference.
    world.inodes_leaked |= not world.profile.fixed("tracefs-inode-leak")


def _instance_name(process: Process, path: str) -> str:
    """The instance name in a path.

    Raises Errno("EPERM") for other directories, which have no mkdir and rmdir.
    """
    if process.credentials.uid != 0:
        raise Errno("EACCES")
    found = _PATH.fullmatch(path)
    if found is None or found[2] is not None:
        raise Errno("EPERM")
    return found[1]


def _is_open(world: World, name: str) -> bool:
    """Whether a file of the instance is open (tr->ref, tr->trace_ref)."""
    start = f"{_DIRECTORY}/{name}/"
    paths = [file.path for file in world.open_files if file.path.startswith(start)]
    paths = [path for path in paths if not _WITHOUT_REFERENCE.fullmatch(path)]
    if not world.profile.has("enable_file_holds_instance"):
        paths = [path for path in paths if not _OF_EVENT.fullmatch(path)]
    return bool(paths)


def _has_variables(world: World, name: str) -> bool:
    """Whether a histogram of the instance defines or reads variables (save_hist_vars)."""
    files = (event.files.get(name) for event in world.table.events)
    found = [trigger.histogram for file in files if file is not None for trigger in file.triggers]
    reading = world.profile.has("reading_histogram_busy")
    return any(each is not None and each.is_listed(reading=reading) for each in found)
