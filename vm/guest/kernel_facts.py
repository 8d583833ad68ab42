"""Facts about the running kernel, as JSON."""

from __future__ import annotations

import os


def describe() -> bytes:
    """Release, command line, configuration, taint … of the running kernel."""
    # Imported on demand to keep the boot fast.
    import json
    import sys

    name = os.uname()
    return json.dumps(
        {
            "release": name.release,
            "version": name.version,
            "machine": name.machine,
            "cmdline": _text("/proc/cmdline").strip(),
            "config": _configuration(),
            "boot_id": _text("/proc/sys/kernel/random/boot_id").strip(),
            "tainted": int(_text("/proc/sys/kernel/tainted") or 0),
            "nproc": os.cpu_count(),
            "pagesize": os.sysconf("SC_PAGE_SIZE"),
            "python": sys.version.split()[0],
            "tracefs": _mounts("tracefs"),
        }
    ).encode("ascii")


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _configuration() -> str | None:
    """The text of /proc/config.gz; None without CONFIG_IKCONFIG_PROC."""
    import zlib

    try:
        with open("/proc/config.gz", "rb") as file:
            packed = file.read()
    except OSError:
        return None
    return zlib.decompress(packed, wbits=31).decode("ascii", "replace")


def _mounts(kind: str) -> list[str]:
    """Mount points of a file system type."""
    fields = (line.split() for line in _text("/proc/mounts").splitlines())
    return [field[1] for field in fields if len(field) > 2 and field[2] == kind]
