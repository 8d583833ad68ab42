"""Facts about the running kernel, as JSON."""

from __future__ import annotations

import os


def describe() -> bytes:
    """Release, configuration, boot id and number of processors of the running kernel.

    The configuration is None without CONFIG_IKCONFIG_PROC.
    """
    # Imported on demand to keep the boot fast.
    import json
    import zlib

    packed = _content("/proc/config.gz")
    facts = {
        "release": os.uname().release,
        "config": zlib.decompress(packed, wbits=31).decode("ascii", "replace") if packed else None,
        "boot_id": _content("/proc/sys/kernel/random/boot_id").decode("ascii").strip(),
        "nproc": os.cpu_count(),
    }
    return json.dumps(facts).encode("ascii")


def _content(path: str) -> bytes:
    """The content of a file; none if there is no such file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
