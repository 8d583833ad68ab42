"""Write what a command makes to a file or to standard output."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path

from conformance.results.errors import ReportError
from host.files import write_atomically

STDOUT = Path("-")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


def print_json(document: object) -> None:
    """Write a document to standard output."""
    sys.stdout.write(json.dumps(document, indent=1) + "\n")


def write(text: str, out: Path | None, hint: str = "name another file") -> None:
    """Write a file, or standard output for None and ``-``.  Raises what ``unwritable`` returns."""
    if out is None or out == STDOUT:
        sys.stdout.write(text)
        return
    try:
        if out.is_symlink() or (out.exists() and not out.is_file()):
            # A pipe, or /dev/stdout, which must not be replaced by a file.
            out.write_text(text, encoding="utf-8", errors="backslashreplace")
        else:
            write_atomically(out, text)
    except OSError as error:
        raise unwritable(out, error, hint) from error


def unwritable(path: Path, error: OSError, hint: str) -> Exception:
    """The error to raise: a full disk is not an error of the user."""
    if error.errno in _FULL:
        return error
    return ReportError(path, f"cannot be written: {error.strerror or error}", hint)
