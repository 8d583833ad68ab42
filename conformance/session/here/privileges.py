"""What a process needs to judge the running kernel: root, and the initial namespaces."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from errno import EEXIST
from pathlib import Path

from conformance.client.addresses import FREE
from conformance.ops.system_calls import MACHINES
from conformance.session.here.errors import Refused
from conformance.session.here.occupancy import text

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
#: Documentation/admin-guide/LSM/Yama.rst; there is no such file without Yama.
_PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_NO_ATTACH = "3"
_PAGE = 4096
# The highest of the ranges of cases begins here.
_ADDRESS = FREE
# MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE; MAP_FAILED.
_FIXED, _FAILED = 0x100022, ctypes.c_void_p(-1).value


def require_privileges() -> None:
    """Raise Refused naming everything that is missing."""
    if os.uname().machine not in MACHINES:
        raise Refused(
            f"--here knows no system call numbers of {os.uname().machine}",
            f"it knows those of {', '.join(sorted(MACHINES))}",
        )
    if mmap.PAGESIZE != _PAGE:
        raise Refused(
            f"the kernel has pages of {mmap.PAGESIZE} bytes, and cases are about {_PAGE}",
            "boot a kernel with pages of 4 KiB",
        )
    if os.geteuid() != 0:
        raise Refused("--here needs root", "run it with sudo")
    held = _effective()
    missing = [name for name, bit in _CAPABILITIES.items() if not held >> bit & 1]
    if missing:
        raise Refused(
            f"--here lacks {', '.join(missing)}",
            "run it outside of a container, or grant the container " + ", ".join(missing),
        )
    for name, inode in _INITIAL.items():
        file = Path(f"/proc/self/ns/{name}")
        # A kernel without these namespaces has no such file.
        if file.exists() and file.stat().st_ino != inode:
            raise Refused(
                f"--here needs the initial {name} namespace: {_WHY[name]}",
                "run it outside of a container",
            )
    _require_no_lockdown()
    _require_readable_memory()
    _require_addresses()


def _effective() -> int:
    """The effective capabilities of this process."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", Path("/proc/self/status").read_text(), re.M)
    return int(found[1], 16) if found else 0


def _require_no_lockdown() -> None:
    """Raise Refused where the kernel keeps tracefs from being opened."""
    if "[confidentiality]" in text(_LOCKDOWN):
        raise Refused(
            "the kernel is locked down (confidentiality): tracefs cannot be opened",
            "boot without lockdown=confidentiality",
        )


def _require_readable_memory() -> None:
    """Raise Refused where not even root may read the memory of another process."""
    if (scope := text(_PTRACE_SCOPE).strip()) == _NO_ATTACH:
        raise Refused(
            f"kernel.yama.ptrace_scope is {scope}: the memory of cases cannot be read",
            "boot with a lower value; the kernel does not lower it before a reboot",
        )


def _require_addresses() -> None:
    """Raise Refused where programs cannot have memory where cases need it."""
    if error := _map(_ADDRESS):
        raise Refused(
            f"cases need memory at {_ADDRESS:#x}, which the kernel refuses: {os.strerror(error)}",
            "boot a kernel with 48 bits of virtual addresses; 39 are too few",
        )


def _map(address: int) -> int:
    """Map a page at an address, and unmap it; errno, or 0."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    numbers = (ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *numbers)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    if libc.mmap(address, _PAGE, mmap.PROT_READ, _FIXED, -1, 0) == _FAILED:
        error = ctypes.get_errno()
        # Something of this process is there, so that there can be.
        return 0 if error == EEXIST else error
    libc.munmap(address, _PAGE)
    return 0
