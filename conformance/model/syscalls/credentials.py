"""Credentials of a process: ids, capabilities, seccomp and namespaces."""

from __future__ import annotations

from conformance import ops
from conformance.model.answers import Answer
from conformance.model.errors import Errno
from conformance.model.state.process import PidNamespace, Process
from conformance.model.state.world import World
from conformance.model.syscalls.handlers import Handlers
from conformance.ops import credentials
from conformance.ops.credentials import Capability


def _become(world: World, process: Process, operation: credentials.Become) -> Answer:
    cred = process.credentials
    cred.become(operation.uid, operation.gid, operation.groups, keep=operation.keep)
    return Answer(0)


def _capset(world: World, process: Process, operation: credentials.Capset) -> Answer:
    cred = process.credentials
    cred.set_capabilities(operation.permitted, operation.effective)
    return Answer(0)


def _no_new_privileges(
    world: World, process: Process, operation: credentials.NoNewPrivileges
) -> Answer:
    process.credentials.no_new_privileges = True
    return Answer(0)


def _seccomp(world: World, process: Process, operation: credentials.Seccomp) -> Answer:
    cred = process.credentials
    if not (cred.no_new_privileges or cred.has_in_own_namespace(Capability.SYS_ADMIN)):
        raise Errno("EACCES")
    process.seccomp_errors |= dict.fromkeys(operation.refused, operation.errno)
    return Answer(0)


def _unshare(world: World, process: Process, operation: credentials.Unshare) -> Answer:
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


def _setuid(world: World, process: Process, operation: ops.Setuid) -> Answer:
    cred = process.credentials
    cred.become(operation.uid, operation.uid, (), keep=False)
    return Answer(0)


HANDLERS: Handlers = {
    ops.Setuid: _setuid,
    credentials.Become: _become,
    credentials.Capset: _capset,
    credentials.NoNewPrivileges: _no_new_privileges,
    credentials.Seccomp: _seccomp,
    credentials.Unshare: _unshare,
}
