"""Credentials of a process: user, groups and capabilities.

Source: kernel/capability.c:capable; include/linux/capability.h:perfmon_capable;
kernel/sys.c:__sys_setresuid; security/commoncap.c.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.model.errors import Errno, NotModelled
from conformance.ops.credentials import EVERYTHING, Capability


@dataclass(slots=True, eq=False)
class Credentials:
    """struct cred.

    ``in_user_namespace`` means that the process has created a user namespace: its capabilities
    count there, and not for resources of the whole system.
    """

    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()
    permitted: int = EVERYTHING
    effective: int = EVERYTHING
    in_user_namespace: bool = False
    no_new_privileges: bool = False

    def has(self, capability: Capability) -> bool:
        """capable(): the process has a capability in the initial user namespace."""
        return not self.in_user_namespace and self.has_in_own_namespace(capability)

    def has_in_own_namespace(self, capability: Capability) -> bool:
        """ns_capable() for the user namespace of the process."""
        return bool(self.effective >> capability & 1)

    @property
    def perfmon(self) -> bool:
        """perfmon_capable(): CAP_PERFMON or CAP_SYS_ADMIN."""
        return self.has(Capability.PERFMON) or self.has(Capability.SYS_ADMIN)

    def become(self, uid: int, gid: int, groups: tuple[int, ...], *, keep: bool) -> None:
        """setgroups, setresgid, setresuid.  Raises Errno("EPERM")."""
        if not (self.has(Capability.SETGID) and self.has(Capability.SETUID)):
            raise Errno("EPERM")
        if self.uid != 0:
            raise NotModelled("a change of user without root")
        self.uid, self.gid, self.groups = uid, gid, groups
        if uid != 0:
            # cap_emulate_setxuid(): none of the user ids is 0 any more.
            self.permitted = self.permitted if keep else 0
            self.effective = 0

    def set_capabilities(self, permitted: int, effective: int) -> None:
        """cap_capset().  Raises Errno("EPERM") for capabilities that are not permitted."""
        if permitted & ~self.permitted or effective & ~permitted:
            raise Errno("EPERM")
        self.permitted, self.effective = permitted, effective

    def enter_user_namespace(self) -> None:
        """unshare(CLONE_NEWUSER): all capabilities, in a namespace that maps no id."""
        self.in_user_namespace = True
        self.permitted = self.effective = EVERYTHING
