"""What a process needs to judge the running kernel: root, and the initial namespaces."""

from __future__ import annotations

import mmap
import os
import re
from pathlib import Path

from conformance.ops.system_calls import MACHINES
from conformance.session.here.errors import NotPermitted

#: Bits of the capabilities that cases use (include/uapi/linux/capability.h).
_CAPABILITIES = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_SYS_CHROOT": 18,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_NICE": 23,
    "CAP_SYS_RESOURCE": 24,
    "CAP_MKNOD": 27,
    "CAP_SYSLOG": 34,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
}
#: include/linux/proc_ns.h: the inodes of the initial namespaces.
_INITIAL = {"user": 0xEFFFFFFD, "pid": 0xEFFFFFFC}
_WHY = {
    "user": "capabilities of another one do not count",
    "pid": "the kernel records the process ids of the initial one",
}
_LOCKDOWN = Path("/sys/kernel/security/lockdown")
_PAGE = 4096


def require_privileges() -> None:
    """Raise NotPermitted naming everything that is missing."""
    if os.uname().machine not in MACHINES:
        raise NotPermitted(
            f"--here knows no system call numbers of {os.uname().machine}",
            f"it knows those of {', '.join(sorted(MACHINES))}",
        )
    if mmap.PAGESIZE != _PAGE:
        raise NotPermitted(
            f"the kernel has pages of {mmap.PAGESIZE} bytes, and cases are about {_PAGE}",
            "boot a kernel with pages of 4 KiB",
        )
    if os.geteuid() != 0:
        raise NotPermitted("--here needs root", "run it with sudo")
    held = _effective()
    missing = [name for name, bit in _CAPABILITIES.items() if not held >> bit & 1]
    if missing:
        raise NotPermitted(
            f"--here lacks {', '.join(missing)}",
            "run it outside of a container, or grant the container " + ", ".join(missing),
        )
    for name, inode in _INITIAL.items():
        file = Path(f"/proc/self/ns/{name}")
        # A kernel without these namespaces has no such file.
        if file.exists() and file.stat().st_ino != inode:
            raise NotPermitted(
                f"--here needs the initial {name} namespace: {_WHY[name]}",
                "run it outside of a container",
            )
    _require_no_lockdown()


def _effective() -> int:
    """The effective capabilities of this process."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", Path("/proc/self/status").read_text(), re.M)
    return int(found[1], 16) if found else 0


def _require_no_lockdown() -> None:
    """Raise NotPermitted where the kernel keeps tracefs from being opened."""
    try:
        text = _LOCKDOWN.read_text()
    except OSError:
        return
    if "[confidentiality]" in text:
        raise NotPermitted(
            "the kernel is locked down (confidentiality): tracefs cannot be opened",
            "boot without lockdown=confidentiality",
        )
