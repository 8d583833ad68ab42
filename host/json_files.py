"""Small things done to files: on disk for sure, or read if they can be."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

# How names end of files that are being written.
UNFINISHED = ".new"


def read_json(file: Path) -> dict[str, object] | None:
    """A record of ours, or None when absent or damaged: then it is made again."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def write_json(file: Path, record: Mapping[str, object]) -> None:
    """Let a file be this record: whole and on disk, or what it was before."""
    fresh = file.with_name(f"{file.name}{UNFINISHED}")
    fresh.write_text(json.dumps(record, indent=1), encoding="utf-8")
    sync(fresh)
    fresh.replace(file)


def digest_of(file: Path) -> str:
    """sha256 of a file's content, in hex."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def sync(path: Path) -> None:
    """Have a file or directory on disk before something that points to it is."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
