"""config.gz: the configuration a kernel was built with, kept beside its results.

Packed as the kernel packs /proc/config.gz it is a twentieth of results.json, and two runs can be
told apart by options and not by digests alone.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

NAME = "config.gz"


def keep(config: Path, directory: Path) -> None:
    """Put a copy of ``config`` into a directory of results.  Raises OSError."""
    (directory / NAME).write_bytes(gzip.compress(config.read_bytes(), mtime=0))


def kept(directory: Path, sha256: str | None) -> str | None:
    """The text of the configuration with this digest; None where it was not kept, or is another."""
    try:
        content = gzip.decompress((directory / NAME).read_bytes())
    except (OSError, EOFError, zlib.error):
        return None
    if hashlib.sha256(content).hexdigest() != sha256:
        return None
    return content.decode(errors="replace")
