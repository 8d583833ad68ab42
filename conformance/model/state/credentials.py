"""Who a process is: user, groups, capabilities, and where these count.

Source: kernel/capability.c:capable; include/linux/capability.h:perfmon_capable;
kernel/sys.c:__sys_setresuid; security/commoncap.c.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.model.errors import Errno, NotModelled
from conformance.ops.credentials import EVERYTHING, Capability


@dataclass(slots=True, eq=False)
class Credentials:
    """What the kernel asks about a process before it lets it do something.

    ``apart`` says that the process is in a user namespace of its own: it has capabilities
    there, which nobody asks for who guards what the whole system shares.
    """

    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()
    permitted: int = EVERYTHING
    effective: int = EVERYTHING
    apart: bool = False
    no_new_privileges: bool = False

    def has(self, capability: Capability) -> bool:
        """capable(): in the first user namespace."""
        return not self.apart and self.has_somewhere(capability)

    def has_somewhere(self, capability: Capability) -> bool:
        """ns_capable() of the process's own user namespace."""
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
            raise NotModelled("an ordinary user that becomes another")
        self.uid, self.gid, self.groups = uid, gid, groups
        if uid != 0:
            # cap_emulate_setxuid(): no user identity is root any more.
            self.permitted = self.permitted if keep else 0
            self.effective = 0

    def set_capabilities(self, permitted: int, effective: int) -> None:
        """cap_capset().  Raises Errno("EPERM") for what was not permitted before."""
        if permitted & ~self.permitted or effective & ~permitted:
            raise Errno("EPERM")
        self.permitted, self.effective = permitted, effective

    def leave_user_namespace(self) -> None:
        """unshare(CLONE_NEWUSER): every capability, in a namespace where nobody is mapped."""
        self.apart = True
        self.permitted = self.effective = EVERYTHING
