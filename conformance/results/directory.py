"""The directory a run writes into: where it is, and whether it may be used."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from conformance.results import journal, kernel_config, results_json
from conformance.results.errors import ReportError
from host.files import sweep

LATEST = "latest"
JUNIT = "junit.xml"
KTAP = "results.ktap"
REPORT = "report.html"
COVERAGE = "coverage.json"
"""What a run on a kernel of flavour gcov says of the lines that were executed."""

# What guests write: in the directory itself, or each in one of its own that is joined at the end.
_GUESTS = ("console.log", "qemu.log", "joined-at")
_GUEST = "gw[0-9]*"
# Every file a run may leave in its directory; --force removes these and nothing else.
FILES = (
    *(journal.NAME, results_json.NAME, JUNIT, KTAP, REPORT, COVERAGE),
    *(kernel_config.NAME, *_GUESTS),
)
# Mistakes of whoever named the directory; anything else (no space, say) is the host's.
_REFUSALS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENOENT}


class DirectoryRefused(ReportError):
    """The directory named for the results cannot be used."""


def default_directory(root: Path, kernel_id: str, now: datetime) -> Path:
    """``root/<kernel id>/<UTC stamp>``; ``now`` must know its time zone and be UTC."""
    return root / kernel_id / now.strftime("%Y%m%dT%H%M%SZ")


def unused(directory: Path) -> Path:
    """The directory, or with a number behind its name: two runs may start within one second."""
    name, number = directory.name, 1
    while directory.exists():
        number += 1
        directory = directory.with_name(f"{name}-{number}")
    return directory


def reserved(directory: Path) -> Path:
    """The same, created: nobody else gets it.  Raises DirectoryRefused, OSError."""
    while True:
        directory = unused(directory)
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise _refused(directory, error) from error
        return directory


def claim(directory: Path, *, resume: bool = False, force: bool = False) -> None:
    """Make ``directory`` ready to be written into.

    It is created when it is not there.  One that holds anything is refused, unless
    ``resume`` goes on with it or ``force`` removes what an earlier run left in it.
    Raises DirectoryRefused, or OSError for trouble that is not the user's.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if force:
            if journal.is_in_use(directory / journal.NAME):
                raise journal.in_use(directory / journal.NAME)
            _clear(directory)
        elif not resume and any(directory.iterdir()):
            raise DirectoryRefused(directory, "is not empty", "name another --out, or add --force")
        # Asking for permissions is no proof: root may write anywhere but on a read-only mount.
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise _refused(directory, error) from error


def _refused(directory: Path, error: OSError) -> Exception:
    """What to raise for a directory that cannot be had: whose mistake is it?"""
    if error.errno not in _REFUSALS:
        return error
    what = f"cannot be written: {error.strerror}"
    return DirectoryRefused(directory, what, "name another --out")


def _clear(directory: Path) -> None:
    """Remove what an earlier run left, also one that was killed."""
    for name in FILES:
        (directory / name).unlink(missing_ok=True)
    sweep(directory)
    for guest in directory.glob(_GUEST):
        for name in _GUESTS:
            (guest / name).unlink(missing_ok=True)
        with suppress(OSError):  # it holds something else
            guest.rmdir()


def find_run(path: Path) -> Path:
    """The results.json that a user means by ``path``: a directory with one, or above one.

    Above several it is that of ``latest``.  Raises ReportError.
    """
    if path.is_file():
        return path
    for directory in (path, path / LATEST):
        if (directory / results_json.NAME).is_file():
            return directory / results_json.NAME
    found = sorted(path.glob(f"*/{results_json.NAME}")) + sorted(
        path.glob(f"*/{LATEST}/{results_json.NAME}")
    )
    if len(found) == 1:
        return found[0]
    if not found:
        what = "has no results.json" if path.is_dir() else "is not there"
        raise ReportError(path, what, "name a directory that a run has written")
    names = ", ".join(str(each.parent.relative_to(path)) for each in found[:5])
    raise ReportError(path, f"has the results of {len(found)} runs", f"name one: {names}")


def link_latest(directory: Path) -> None:
    """Point ``latest`` beside ``directory`` to it, in one step.  Raises OSError."""
    temporary = directory.parent / f".{LATEST}.{os.getpid()}"
    for left in directory.parent.glob(f".{LATEST}.*"):
        if left == temporary or not Path("/proc", left.suffix[1:]).exists():
            left.unlink(missing_ok=True)
    temporary.symlink_to(directory.name)
    temporary.replace(directory.parent / LATEST)
