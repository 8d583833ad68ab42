"""The guest's root: a cpio archive with the files of the agent and of Python, and nothing else.

The kernel unpacks it as its initial root file system.  The guest then mounts nothing of the host:
a mounted 9p export would prevent saving a snapshot, and is slower than memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from virtme.cpiowriter import CpioWriter, FileMetaData

from host.files import read_record, write_atomically, write_record
from host.programs import output_of
from vm.errors import HostTrouble
from vm.qemu import elf, guest_files

_NEEDS = Path(__file__).parents[1] / "guest" / "needed_files.py"
#: The directory of the package vm.
_CHECKOUT = Path(__file__).parents[2]
_NEEDS_S = 60.0
_LOADER_CACHE = Path("/etc/ld.so.cache")
#: Directories created in any case.
_DIRECTORIES = ("/dev", "/mnt", "/proc", "/root", "/run", "/sys", "/tmp")
#: Devices needed before /dev is mounted: name to major and minor number.
_DEVICES = {"dev/null": (1, 3), "dev/urandom": (1, 9)}
#: Maximum number of symlinks in a path (namei.c: MAXSYMLINKS).
_MAX_LINKS = 40


class NoArchive(HostTrouble):
    """The archive could not be created."""


def interpreter() -> Path:
    """The running Python, outside its virtual environment."""
    return Path(sys.executable).resolve()


def root_archive(python: Path, cache: Path) -> Path:
    """The archive for an interpreter, cached in `cache` until one of its files changes.

    Raises NoArchive, OSError.
    """
    guest_files.compile_agent()
    directory = cache / "roots"
    name = hashlib.sha256(f"{python}\0{_CHECKOUT}".encode()).hexdigest()[:16]
    stamps_file, archive = directory / f"{name}.json", directory / f"{name}.cpio"
    if archive.is_file() and _is_current(stamps_file):
        # Its last use, for garbage collection; the archive's own times tell if it has changed.
        with suppress(OSError):
            os.utime(stamps_file)
        return archive
    directory.mkdir(parents=True, exist_ok=True)
    needed = _needed(python)
    stamps = {str(path): _stamp(path) for path in needed}
    # Remove the stamps first: an archive without stamps is not used.
    stamps_file.unlink(missing_ok=True)
    write_atomically(archive, _archive(needed))
    write_record(stamps_file, stamps)
    return archive


def _is_current(stamps_file: Path) -> bool:
    stamps = read_record(stamps_file)
    try:
        return stamps is not None and all(_stamp(Path(path)) == stamps[path] for path in stamps)
    except OSError:
        return False


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _needed(python: Path) -> list[Path]:
    """The files that the interpreter reports, its loader, and the sonames of its libraries."""
    command = [str(python), "-I", "-S", str(_NEEDS), str(_CHECKOUT)]
    # Another locale could map an archive of hundreds of megabytes.
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        reported = json.loads(output_of(command, _NEEDS_S, env=environment))
        # Reported byte-code need not exist.
        named = [path for path in map(Path, reported) if path.is_file()]
        loader = elf.loader_of(python)
        aliases = [alias for path in named if elf.segments(path) for alias in _aliases(path)]
    except (OSError, ValueError) as error:
        raise NoArchive(
            f"{python} did not report the files it needs: {error}",
            hint=f"run it by hand: {shlex.join(command)}",
        ) from None
    wanted = {*named, *aliases, _LOADER_CACHE, *([loader] if loader else [])}
    return sorted(path for path in wanted if path.is_file())


def _aliases(library: Path) -> list[Path]:
    """Symlinks to a library in its directory, such as its soname."""
    stem = library.name.partition(".so")[0]
    names = library.parent.glob(f"{stem}.so*")
    return [name for name in names if name.is_symlink() and name.resolve() == library]


def _archive(files: Iterable[Path]) -> bytes:
    """The archive in cpio format (Documentation/driver-api/early-userspace)."""
    out = io.BytesIO()
    writer = CpioWriter(out)
    for path in _entries(files):
        name = os.fsencode(path.relative_to("/"))
        if path.is_symlink():
            writer.symlink(os.fsencode(path.readlink()), name)
        elif path.is_file():
            status = path.stat()
            # Byte-code is valid only for the mtime of its source.
            times = FileMetaData(mtime=int(status.st_mtime))
            mode = CpioWriter.TYPE_REG | stat.S_IMODE(status.st_mode)
            writer.write_object(name, elf.loaded(path), mode, times)
        else:
            writer.mkdir(name, 0o755)
    for device, number in _DEVICES.items():
        writer.mkchardev(device.encode(), number, 0o666)
    writer.write_trailer()
    return out.getvalue()


def _entries(files: Iterable[Path]) -> Sequence[Path]:
    """All entries of the archive, directories before their content."""
    found = {Path(name) for name in _DIRECTORIES}
    # Symlinks such as /lib64, through which the loader may be named.
    found |= {path for path in Path("/").iterdir() if path.is_symlink()}
    for file in files:
        found |= _path_to(file)
    return sorted(found)


def _path_to(file: Path) -> set[Path]:
    """A file with all directories and symlinks that lead to it."""
    found: set[Path] = set()
    for _ in range(_MAX_LINKS):
        parents = [*reversed(file.parents), file]
        found |= set(parents[1:])
        link = next((path for path in parents if path.is_symlink()), None)
        if link is None:
            return found
        # The content is not below the link but below its target.
        found -= {path for path in parents if path != link and path.is_relative_to(link)}
        target = link.parent / link.readlink()
        file = Path(os.path.normpath(target / file.relative_to(link)))
    raise NoArchive(f"too many links in the path of {file}", hint="inspect them with namei -l")
