"""Process 1: mount file systems, open the ports and serve.

Run by the kernel as `python -I -S init.py DIRECTORY PORT …`, where DIRECTORY holds the package vm
and the first port is that of the supervisor.
"""

from __future__ import annotations

import os
import sys

#: (type, mount point, options).  Mounting a file system that the kernel lacks fails silently.
MOUNTS = (
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("tmpfs", "/tmp", "mode=1777"),
    ("tmpfs", "/run", "mode=755"),
    ("debugfs", "/sys/kernel/debug", ""),
    ("tracefs", "/sys/kernel/tracing", ""),
)
MS_BIND = 4096


def mount_all(directory: str) -> None:
    """Mount MOUNTS through libc, without hiding DIRECTORY and Python, which later imports need."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    for kind, where, options in MOUNTS:
        below = [each for each in (directory, sys.base_prefix) if each.startswith(where + "/")]
        # A root archive is writable without a mount.
        if below and os.access("/", os.W_OK):
            continue
        hidden = [(each, os.open(each, os.O_PATH)) for each in below]
        source = kind.encode()
        libc.mount(source, where.encode(), source, 0, options.encode())
        for each, descriptor in hidden:
            # The host's root, as a user who must not write there.
            os.makedirs(each, exist_ok=True)
            libc.mount(f"/proc/self/fd/{descriptor}".encode(), each.encode(), None, MS_BIND, None)
            os.close(descriptor)


def power_off() -> None:
    """Power the machine off."""
    import ctypes

    linux_reboot_cmd_power_off = 0x4321FEDC
    libc = ctypes.CDLL(None)
    # Flush the serial console.
    libc.tcdrain(2)
    libc.reboot(linux_reboot_cmd_power_off)


def main(directory: str, *ports: str) -> None:
    """Serve until the host hangs up."""
    sys.path.insert(0, directory)
    # Before mounting: mounts would hide a checkout below /tmp or /run.
    from vm.guest.supervisor import serve_host

    mount_all(directory)
    serve_host(ports)
    power_off()


if __name__ == "__main__":
    main(*sys.argv[1:])
