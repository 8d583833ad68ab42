"""Entry of a system call: seccomp, path lookup and permissions."""

from __future__ import annotations

import os
from typing import TypeVar

from msgspec.structs import replace

from conformance import ops
from conformance.model.errors import Errno
from conformance.model.state import namespaces
from conformance.model.state.namespaces import (
    MAY_READ,
    MAY_SEARCH,
    MAY_WRITE,
    TRACEFS,
    Attributes,
    Mount,
)
from conformance.model.state.process import Process
from conformance.model.state.world import World
from conformance.model.tracefs import files as tracefs
from conformance.ops.credentials import Capability

Pathed = ops.Open | ops.ReadFile | ops.WriteFile | ops.Stat | ops.StoreNumber
AnyOperation = TypeVar("AnyOperation", bound=ops.Operation)
_FILTERED = {
    ops.Ioctl: "ioctl",
    ops.Writev: "writev",
    ops.Pwritev: "pwritev",
    ops.Pwrite: "pwrite64",
}
SECURITYFS = "/sys/kernel/security"


def enter(world: World, process: Process, operation: AnyOperation) -> AnyOperation:
    """Check an operation and translate its path to the initial mount namespace.

    Raises Errno for what seccomp, a mode or a mount refuses.
    """
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
            # ACC_MODE(): O_ACCMODE itself needs both, and gives neither.
            both = MAY_READ | MAY_WRITE
            access = (MAY_READ, MAY_WRITE, both, both)[flags & os.O_ACCMODE]
            return access | (MAY_WRITE if flags & os.O_TRUNC else 0)
    return MAY_READ


def resolve(world: World, process: Process, path: str, access: int) -> str:
    """The path in the initial mount namespace.

    Raises Errno: EACCES for a directory or the file, then EROFS.
    """
    found, mount = (process.namespace or world.namespace).find(process.root + path)
    cred = process.credentials
    if access and _is_missing(world, found, mount):
        raise Errno("ENOENT")
    if found.startswith(f"{TRACEFS}/") and TRACEFS.startswith(mount.root):
        # A bind mount of one file does not lead through the root of tracefs.
        namespaces.check(attributes(world, TRACEFS), cred, MAY_SEARCH, directory=True)
    if world.tracefs_readonly and access & MAY_WRITE and found.startswith(f"{TRACEFS}/"):
        # sb_permission() comes before the mode.
        raise Errno("EROFS")
    if found == tracefs.MAXIMUM:
        namespaces.check_sysctl(cred, access)
    elif access and not cred.has(Capability.DAC_OVERRIDE) and found.startswith("/sys/"):
        namespaces.check(attributes(world, found), cred, access, directory=False)
    if mount.readonly and access & MAY_WRITE:
        raise Errno("EROFS")
    return found


def _is_missing(world: World, path: str, mount: Mount) -> bool:
    """Whether a path does not exist: never created in a tmpfs, or on no mount."""
    if path.startswith("tmpfs"):
        return path not in world.tmpfs_files
    bare = not mount.root and path.startswith((f"{TRACEFS}/", f"{SECURITYFS}/"))
    return bare or path.startswith(f"{TRACEFS}/sys/")


def attributes(world: World, path: str) -> Attributes:
    """Mode and owner of a file.  Raises NotModelled."""
    if path not in world.attributes:
        group = world.tracefs_gid if path.startswith(TRACEFS) else 0
        return Attributes(tracefs.mode(world, path), 0, group)
    return world.attributes[path]


def check_exists(world: World, path: str) -> None:
    """Raise Errno("ENOENT") for a path that was never created in a tmpfs."""
    if path.startswith("tmpfs") and path not in world.tmpfs_files:
        raise Errno("ENOENT")
