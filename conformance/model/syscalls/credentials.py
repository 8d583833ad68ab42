"""Credentials, mounts, modes and seccomp: checks before user_events is reached."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TypeVar

from conformance import ops
from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled
from conformance.model.handlers import Handlers
from conformance.model.state import namespaces
from conformance.model.state.namespaces import (
    MAY_READ,
    MAY_SEARCH,
    MAY_WRITE,
    TRACEFS,
    Attributes,
    Mount,
)
from conformance.model.state.process import PidNamespace, Process
from conformance.model.state.world import World
from conformance.model.tracefs import files as tracefs
from conformance.ops import credentials
from conformance.ops.credentials import Capability

Pathed = ops.Open | ops.ReadFile | ops.WriteFile | ops.Stat | ops.StoreNumber
AnyOperation = TypeVar("AnyOperation", bound=ops.Operation)

_FILTERED = {
    ops.Ioctl: "ioctl",
    ops.Writev: "writev",
    ops.Pwritev: "pwritev",
    ops.Pwrite: "pwrite64",
}
_SECURITYFS = "/sys/kernel/security"


def enter(world: World, operation: AnyOperation) -> AnyOperation:
    """Check an operation and translate its path to the initial mount namespace.

    Raises Errno for what seccomp, a mode or a mount refuses.
    """
    process = world.processes.get(operation.actor)
    if process is None:
        return operation
    filtered = _FILTERED.get(type(operation))
    if filtered in process.seccomp_errors:
        raise Errno(process.seccomp_errors[filtered])
    if isinstance(operation, Pathed):
        path = resolve(world, process, operation.path, _access(operation))
        if path != operation.path:
            operation = replace(operation, path=path)
    return operation


def _access(operation: Pathed) -> int:
    """The access that an operation needs; 0 for stat(2)."""
    match operation:
        case ops.Stat():
            return 0
        case ops.Open(flags=flags) | ops.WriteFile(flags=flags):
            access = (MAY_READ, MAY_WRITE, MAY_READ | MAY_WRITE)[flags & os.O_ACCMODE]
            return access | (MAY_WRITE if flags & os.O_TRUNC else 0)
    return MAY_READ


def resolve(world: World, process: Process, path: str, access: int) -> str:
    """The path in the initial mount namespace.

    Raises Errno: EACCES for a directory or the file, then EROFS.
    """
    found, mount = (process.namespace or world.namespace).find(process.root + path)
    who = process.credentials
    if access and _is_missing(world, found, mount):
        raise Errno("ENOENT")
    if found.startswith(f"{TRACEFS}/") and TRACEFS.startswith(mount.root):
        # A bind mount of one file does not lead through the root of tracefs.
        namespaces.check(attributes(world, TRACEFS), who, MAY_SEARCH, directory=True)
    if world.tracefs_readonly and access & MAY_WRITE and found.startswith(f"{TRACEFS}/"):
        # sb_permission() comes before the mode.
        raise Errno("EROFS")
    if found == tracefs.MAXIMUM:
        namespaces.check_sysctl(who, access)
    elif access and not who.has(Capability.DAC_OVERRIDE) and found.startswith("/sys/"):
        namespaces.check(attributes(world, found), who, access, directory=False)
    if mount.readonly and access & MAY_WRITE:
        raise Errno("EROFS")
    return found


def _is_missing(world: World, path: str, mount: Mount) -> bool:
    """Whether a path does not exist: never created in a tmpfs, or on no mount."""
    if path.startswith("tmpfs"):
        return path not in world.tmpfs_files
    bare = not mount.root and path.startswith((f"{TRACEFS}/", f"{_SECURITYFS}/"))
    return bare or path.startswith(f"{TRACEFS}/sys/")


def attributes(world: World, path: str) -> Attributes:
    """Mode and owner of a file.  Raises NotModelled."""
    if path not in world.attributes:
        group = world.tracefs_gid if path.startswith(TRACEFS) else 0
        return Attributes(tracefs.mode(world, path), 0, group)
    return world.attributes[path]


# Identity


def _become(world: World, operation: credentials.Become) -> Answer:
    who = world.process(operation.actor).credentials
    who.become(operation.uid, operation.gid, operation.groups, keep=operation.keep)
    return Answer(0)


def _capset(world: World, operation: credentials.Capset) -> Answer:
    who = world.process(operation.actor).credentials
    who.set_capabilities(operation.permitted, operation.effective)
    return Answer(0)


def _no_new_privileges(world: World, operation: credentials.NoNewPrivileges) -> Answer:
    world.process(operation.actor).credentials.no_new_privileges = True
    return Answer(0)


def _seccomp(world: World, operation: credentials.Seccomp) -> Answer:
    process = world.process(operation.actor)
    who = process.credentials
    if not (who.no_new_privileges or who.has_in_own_namespace(Capability.SYS_ADMIN)):
        raise Errno("EACCES")
    process.seccomp_errors |= dict.fromkeys(operation.refused, operation.errno)
    return Answer(0)


def _unshare(world: World, operation: credentials.Unshare) -> Answer:
    process = world.process(operation.actor)
    if operation.flags & credentials.CLONE_NEWUSER:
        process.credentials.enter_user_namespace()
    if operation.flags & credentials.CLONE_NEWNS:
        if not process.credentials.has_in_own_namespace(Capability.SYS_ADMIN):
            raise Errno("EPERM")
        before = process.namespace or world.namespace
        process.namespace = before.copy(in_user_namespace=process.credentials.in_user_namespace)
    if operation.flags & credentials.CLONE_NEWPID:
        if not process.credentials.has_in_own_namespace(Capability.SYS_ADMIN):
            raise Errno("EPERM")
        process.pid_namespace_for_children = PidNamespace()
    return Answer(0)


# Mounts


def _chroot(world: World, operation: credentials.Chroot) -> Answer:
    process = world.process(operation.actor)
    path = process.root + operation.path
    found, _ = (process.namespace or world.namespace).find(path)
    if found == TRACEFS:
        namespaces.check(attributes(world, found), process.credentials, MAY_SEARCH, directory=True)
    if not process.credentials.has_in_own_namespace(Capability.SYS_CHROOT):
        raise Errno("EPERM")
    process.root = path
    return Answer(0)


def _may_mount(world: World, process: Process) -> None:
    """may_mount().  Raises Errno("EPERM")."""
    namespace = process.namespace
    if namespace is None:
        raise NotModelled("mounts in the initial mount namespace")
    who = process.credentials
    in_user_namespace = (
        who.in_user_namespace
        and namespace.in_user_namespace
        and who.has_in_own_namespace(Capability.SYS_ADMIN)
    )
    if not in_user_namespace and not who.has(Capability.SYS_ADMIN):
        raise Errno("EPERM")


def _mount(world: World, operation: credentials.Mount) -> Answer:
    process = world.process(operation.actor)
    target = resolve(world, process, operation.target, 0)
    _check_exists(world, target)
    _may_mount(world, process)
    assert process.namespace is not None
    mounts = process.namespace.mounts
    if operation.flags & credentials.MS_REMOUNT:
        place = max(n for n, each in enumerate(mounts) if each.target == operation.target)
        readonly = bool(operation.flags & credentials.MS_RDONLY)
        if not operation.flags & credentials.MS_BIND:
            _reconfigure(world, process, mounts[place].root, operation.options, readonly=readonly)
        mounts[place] = replace(mounts[place], readonly=readonly)
        return Answer(0)
    if operation.flags & credentials.MS_BIND:
        root = resolve(world, process, operation.source, 0)
        _check_exists(world, root)
        readonly = process.namespace.find(operation.source)[1].readonly
    else:
        root, readonly = _new_root(world, process, operation.kind), False
        _apply_options(world, root, operation.options)
    mounts.append(Mount(operation.target, root, readonly))
    return Answer(0)


def _new_root(world: World, process: Process, kind: str) -> str:
    """The root of a new mount."""
    if kind == "tmpfs":
        world.tmpfs_files.append(f"tmpfs{len(world.tmpfs_files)}:")
        return world.tmpfs_files[-1]
    if process.credentials.in_user_namespace:
        # tracefs and securityfs lack FS_USERNS_MOUNT.
        raise Errno("EPERM")
    match kind:
        case "tracefs":
            return TRACEFS
        case "securityfs":
            return _SECURITYFS
    raise NotModelled(f"mounting {kind}")


def _reconfigure(
    world: World, process: Process, root: str, options: str, *, readonly: bool
) -> None:
    """do_remount(), reconfigure_super(): applies to every mount of the file system.

    Raises Errno: EPERM, or EBUSY while a file is open for writing.
    """
    if root != TRACEFS:
        raise NotModelled(f"reconfiguring {root}")
    if not process.credentials.has(Capability.SYS_ADMIN):
        raise Errno("EPERM")
    if readonly and not world.tracefs_readonly and _is_written(world):
        raise Errno("EBUSY")
    _apply_options(world, root, options)
    world.tracefs_readonly = readonly


def _is_written(world: World) -> bool:
    """sb_prepare_remount_readonly(): whether a tracefs file is open for writing."""
    files = (file for each in world.processes.values() for file in each.slots.values())
    return any(
        file.path.startswith(TRACEFS) and file.flags & os.O_ACCMODE != os.O_RDONLY for file in files
    )


def _apply_options(world: World, root: str, options: str) -> None:
    """tracefs_apply_options(): tracefs has one superblock, which every mount changes."""
    if not options:
        return
    if root != TRACEFS:
        raise NotModelled(f"options of {root}")
    for option in options.split(","):
        name, _, value = option.partition("=")
        if name == "mode":
            before = attributes(world, TRACEFS)
            world.attributes[TRACEFS] = replace(before, mode=int(value, 8))
        elif name == "gid":
            world.tracefs_gid = int(value)
            for path, before in world.attributes.items():
                world.attributes[path] = replace(before, gid=world.tracefs_gid)
        else:
            raise NotModelled(f"option {option} of tracefs")


def _umount(world: World, operation: credentials.Umount) -> Answer:
    process = world.process(operation.actor)
    _may_mount(world, process)
    assert process.namespace is not None
    mounts = process.namespace.mounts
    mounted = [each for each in mounts if each.target == operation.target]
    if not mounted:
        raise Errno("EINVAL")
    mounts.remove(mounted[-1])
    return Answer(0)


def _create_node(world: World, operation: ops.Mknod | ops.Mkdir) -> Answer:
    path = resolve(world, world.process(operation.actor), operation.path, 0)
    if not path.startswith("tmpfs"):
        raise NotModelled(f"making {path}")
    if path in world.tmpfs_files:
        raise Errno("EEXIST")
    world.tmpfs_files.append(path)
    return Answer(0)


def _check_exists(world: World, path: str) -> None:
    """Raise Errno("ENOENT") for a path that was never created in a tmpfs."""
    if path.startswith("tmpfs") and path not in world.tmpfs_files:
        raise Errno("ENOENT")


# Modes and owners


def _chmod(world: World, operation: ops.Chmod) -> Answer:
    before, path = _changed_attributes(world, operation)
    who = world.process(operation.actor).credentials
    if who.uid != before.uid and not who.has(Capability.FOWNER):
        raise Errno("EPERM")
    world.attributes[path] = replace(before, mode=operation.mode)
    return Answer(0)


def _chown(world: World, operation: ops.Chown) -> Answer:
    before, path = _changed_attributes(world, operation)
    who = world.process(operation.actor).credentials
    uid = before.uid if operation.uid == -1 else operation.uid
    gid = before.gid if operation.gid == -1 else operation.gid
    own = who.uid == before.uid == uid and gid in (before.gid, who.gid, *who.groups)
    if not own and not who.has(Capability.CHOWN):
        raise Errno("EPERM")
    world.attributes[path] = replace(before, uid=uid, gid=gid)
    return Answer(0)


def _changed_attributes(world: World, operation: ops.Chmod | ops.Chown) -> tuple[Attributes, str]:
    """The attributes and path of a file.  Raises Errno: EROFS, or EPERM for a sysctl."""
    process = world.process(operation.actor)
    path = resolve(world, process, operation.path, 0)
    _, mount = (process.namespace or world.namespace).find(process.root + operation.path)
    if mount.readonly or (world.tracefs_readonly and path.startswith(TRACEFS)):
        raise Errno("EROFS")
    if path == tracefs.MAXIMUM:
        # proc_sys_setattr()
        raise Errno("EPERM")
    return attributes(world, path), path


def _ownership(world: World, operation: ops.Ownership) -> Answer:
    path = resolve(world, world.process(operation.actor), operation.path, 0)
    owned = attributes(world, path)
    return Answer(None, "", b"%d:%d" % (owned.uid, owned.gid))


def _setuid(world: World, operation: ops.Setuid) -> Answer:
    who = world.process(operation.actor).credentials
    who.become(operation.uid, operation.uid, (), keep=False)
    return Answer(0)


HANDLERS: Handlers = {
    ops.Setuid: _setuid,
    credentials.Become: _become,
    credentials.Capset: _capset,
    credentials.NoNewPrivileges: _no_new_privileges,
    credentials.Seccomp: _seccomp,
    credentials.Unshare: _unshare,
    credentials.Chroot: _chroot,
    credentials.Mount: _mount,
    credentials.Umount: _umount,
    ops.Mknod: _create_node,
    ops.Mkdir: _create_node,
    ops.Chmod: _chmod,
    ops.Chown: _chown,
    ops.Ownership: _ownership,
}
