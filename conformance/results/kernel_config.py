"""config.gz: the configuration of the kernel, stored with its results.

Compressed it takes a twentieth of results.json; `uevt compare` names the options that differ.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

NAME = "config.gz"


def keep(config: Path, directory: Path) -> None:
    """Copy ``config`` into a directory of results.  Raises OSError."""
    (directory / NAME).write_bytes(gzip.compress(config.read_bytes(), mtime=0))


def kept(directory: Path, sha256: str | None) -> str | None:
    """The configuration with this digest; None if it was not stored or is another one."""
    try:
        content = gzip.decompress((directory / NAME).read_bytes())
    except (OSError, EOFError, zlib.error):
        return None
    if hashlib.sha256(content).hexdigest() != sha256:
        return None
    return content.decode(errors="replace")
