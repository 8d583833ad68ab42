"""Process 1: mounts what user space expects, finds the channel's port, and serves.

Run by the kernel as `python -I -S init.py DIRECTORY PORT`, where DIRECTORY holds the package vm.
"""

from __future__ import annotations

import os
import sys

#: (type, where, options); a file system the kernel lacks is not mounted, and kernel_facts.py tells.
MOUNTS = (
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("tmpfs", "/tmp", "mode=1777"),
    ("tmpfs", "/run", "mode=755"),
    ("debugfs", "/sys/kernel/debug", ""),
    ("tracefs", "/sys/kernel/tracing", ""),
)


def mount_all(directory: str) -> None:
    """Mount MOUNTS through libc: os has no mount, and /bin/mount would be another program.

    DIRECTORY stays to be seen: some of what is in it is imported when it is needed.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    for kind, where, options in MOUNTS:
        # A root of our own can be written as it is.
        if directory.startswith(where + "/") and os.access("/", os.W_OK):
            continue
        source = kind.encode()
        libc.mount(source, where.encode(), source, 0, options.encode())


def power_off() -> None:
    """End the machine: nobody is left to serve."""
    import ctypes

    linux_reboot_cmd_power_off = 0x4321FEDC
    libc = ctypes.CDLL(None)
    # What was said last may still be on its way through the serial line.
    libc.tcdrain(2)
    libc.reboot(linux_reboot_cmd_power_off)


def main(directory: str, port_name: str) -> None:
    """Serve the host until it is gone."""
    sys.path.insert(0, directory)
    # Before the mounts, which would hide a checkout below /tmp or /run.
    from vm import wire
    from vm.guest.port import HostGone, Port
    from vm.guest.supervisor import Supervisor

    mount_all(directory)
    try:
        Supervisor(Port.named(port_name)).serve()
    except HostGone:
        pass
    except wire.FrameError as error:
        os.write(2, f"uevt: the host's {error}\n".encode())
    power_off()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
