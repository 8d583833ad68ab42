"""The directory that a run writes into: its name, its files, and who may use it."""

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
REPRODUCERS = "repro"
"""Directory of the stand-alone programs of failures."""
COVERAGE = "coverage.json"
"""Lines executed, of a run on a kernel of flavour gcov."""

# Files of a guest: in the directory itself, or in one per guest.
_GUEST_FILES = ("console.log", "qemu.log", "joined-at")
_GUESTS = "gw[0-9]*"
# The other files of a run; --force removes these and nothing else.
_FILES = (journal.NAME, results_json.NAME, JUNIT, KTAP, REPORT, COVERAGE, kernel_config.NAME)
# Errors of the user who named the directory; any other, such as ENOSPC, is the host's.
_REFUSALS = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
    *(errno.ENOENT, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL),
}


def default_directory(root: Path, kernel_id: str, now: datetime) -> Path:
    """``root/<kernel id>/<UTC stamp>``; ``now`` must be in UTC."""
    return root / kernel_id / now.strftime("%Y%m%dT%H%M%SZ")


def unused(directory: Path) -> Path:
    """The directory, with a numeric suffix if it exists: two runs may start in one second."""
    name, number = directory.name, 1
    while directory.exists():
        number += 1
        directory = directory.with_name(f"{name}-{number}")
    return directory


def reserved(directory: Path) -> Path:
    """Create an unused directory, safe against other runs.  Raises ReportError, OSError."""
    while True:
        directory = unused(directory)
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise _refused(directory, error) from error
        return directory


def relative(path: Path) -> Path:
    """A path for people: relative to their working directory if it is below it.

    Sessions run in the checkout, and have that directory in ``UEVT_CWD`` unless it was removed.
    """
    here = Path(os.environ.get("UEVT_CWD") or Path.cwd())
    return path.relative_to(here) if path.is_relative_to(here) else path


def claim(directory: Path, *, resume: bool = False, force: bool | None = None) -> None:
    """Create ``directory``, or make an existing one ready for results.

    A directory that is not empty is refused, unless ``resume`` continues its run or ``force``
    removes the results in it (None: the command has no --force).  Raises ReportError for errors of
    the user, OSError for others.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if force:
            if journal.is_in_use(directory / journal.NAME):
                raise journal.in_use(directory / journal.NAME)
            _clear(directory)
        elif not resume:
            require_empty(directory, has_force=force is not None)
        # Permission bits do not tell: root can write anywhere but on a read-only mount.
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise _refused(directory, error) from error


def require_empty(directory: Path, *, has_force: bool = False) -> None:
    """Raise ReportError for a directory with files.  Its hint is for commands with --force or not.

    Nothing is created.  Raises OSError as well.
    """
    try:
        is_used = directory.is_dir() and any(directory.iterdir())
    except OSError as error:
        raise _refused(directory, error) from error
    if is_used:
        hint = "name another --out" + (", or add --force" if has_force else "")
        raise ReportError(directory, "is not empty", hint)


def link_latest(directory: Path) -> None:
    """Atomically point the symbolic link ``latest`` to a directory next to it.

    It stays if it points to a later run.  Raises OSError.
    """
    link = directory.parent / LATEST
    if link.is_symlink() and link.is_dir() and link.readlink().name > directory.name:
        return
    temporary = directory.parent / f".{LATEST}.{os.getpid()}"
    for left in directory.parent.glob(f".{LATEST}.*"):
        if left == temporary or not Path("/proc", left.suffix[1:]).exists():
            left.unlink(missing_ok=True)
    temporary.symlink_to(directory.name)
    temporary.replace(link)


def _refused(directory: Path, error: OSError) -> Exception:
    if error.errno not in _REFUSALS:
        return error
    what = f"cannot be written: {error.strerror}"
    return ReportError(directory, what, "name another --out")


def _clear(directory: Path) -> None:
    """Remove the files of an earlier run, also of one that was killed."""
    for name in (*_FILES, *_GUEST_FILES):
        (directory / name).unlink(missing_ok=True)
    sweep(directory)
    reproducers = directory / REPRODUCERS
    for program in reproducers.glob("*.c"):
        program.unlink(missing_ok=True)
    with suppress(OSError):  # not there, or not empty
        reproducers.rmdir()
    for guest in directory.glob(_GUESTS):
        for name in _GUEST_FILES:
            (guest / name).unlink(missing_ok=True)
        with suppress(OSError):  # not empty: it has files of the user
            guest.rmdir()
