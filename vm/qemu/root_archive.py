"""The guest's root: an archive of the files that our half is made of, and of nothing else.

The kernel unpacks it as its initial root file system.  So the guest mounts nothing of the host's:
a mounted export would forbid saving the machine's state, and be slower than memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from virtme.cpiowriter import CpioWriter, FileMetaData

from host.files import write_atomically
from vm.errors import HostTrouble
from vm.qemu import elf, guest_files

_NEEDS = Path(__file__).parents[1] / "guest" / "needed_files.py"
#: Where the package vm is.
_CHECKOUT = Path(__file__).parents[2]
_NEEDS_SECONDS = 60.0
#: What the loader finds libraries with.
_LOADER_CACHE = Path("/etc/ld.so.cache")
#: Where processes expect directories to be, whatever is in them.
_DIRECTORIES = ("/dev", "/mnt", "/proc", "/root", "/run", "/sys", "/tmp")
#: What an interpreter may ask for before /dev is mounted: name to major and minor number.
_DEVICES = {"dev/null": (1, 3), "dev/urandom": (1, 9)}
#: The most links there may be on the way to a file (namei.c: MAXSYMLINKS).
_MOST_LINKS = 40


class NoArchive(HostTrouble):
    """The archive could not be made."""


def interpreter() -> Path:
    """The Python that runs us, without the environment around it."""
    return Path(sys.executable).resolve()


def root_archive(python: Path, cache: Path) -> Path:
    """The archive for an interpreter, made unless `cache` (a directory) has it already.

    It is made anew when a file in it has changed.  Raises NoArchive, OSError.
    """
    guest_files.compile_agent()
    directory = cache / "roots"
    name = hashlib.sha256(f"{python}\0{_CHECKOUT}".encode()).hexdigest()[:16]
    known, archive = directory / f"{name}.json", directory / f"{name}.cpio"
    if archive.is_file() and _is_current(known):
        return archive
    directory.mkdir(parents=True, exist_ok=True)
    needed = _needed(python)
    stamps = {str(path): _stamp(path) for path in needed}
    # In this order: an archive without its stamps is made again.
    known.unlink(missing_ok=True)
    write_atomically(archive, _archive(needed))
    write_atomically(known, json.dumps(stamps).encode())
    return archive


def _is_current(known: Path) -> bool:
    try:
        stamps: dict[str, list[int]] = json.loads(known.read_text())
        return all(_stamp(Path(path)) == stamp for path, stamp in stamps.items())
    except (OSError, ValueError, RecursionError):
        return False


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _needed(python: Path) -> list[Path]:
    """All files, asked of the interpreter itself; those that it names libraries by too."""
    command = [str(python), "-I", "-S", str(_NEEDS), str(_CHECKOUT)]
    # A guest has no locale; ours could map an archive of hundreds of megabytes.
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            timeout=_NEEDS_SECONDS,
            env=environment,
        )
        # What Python names need not be there, such as byte-code that nobody has compiled.
        named = [path for path in map(Path, json.loads(done.stdout)) if path.is_file()]
        loader = elf.loader_of(python)
        aliases = [alias for path in named if elf.segments(path) for alias in _aliases(path)]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise NoArchive(
            f"{python} does not tell what it needs: {said.strip()}",
            hint=f"run it by hand: {shlex.join(command)}",
        ) from None
    wanted = {*named, *aliases, _LOADER_CACHE, *([loader] if loader else [])}
    return sorted(path for path in wanted if path.is_file())


def _aliases(library: Path) -> list[Path]:
    """The other names of a library in its directory: programs name it by its soname."""
    stem = library.name.partition(".so")[0]
    names = library.parent.glob(f"{stem}.so*")
    return [name for name in names if name.is_symlink() and name.resolve() == library]


def _archive(files: Iterable[Path]) -> bytes:
    """The archive as the kernel reads it (Documentation/driver-api/early-userspace)."""
    out = io.BytesIO()
    writer = CpioWriter(out)
    for path in _directory(files):
        name = os.fsencode(path.relative_to("/"))
        if path.is_symlink():
            writer.symlink(os.fsencode(path.readlink()), name)
        elif path.is_file():
            status = path.stat()
            # Byte-code is believed when the time of its source is the one in it.
            times = FileMetaData(mtime=int(status.st_mtime))
            mode = CpioWriter.TYPE_REG | stat.S_IMODE(status.st_mode)
            writer.write_object(name, elf.loaded(path), mode, times)
        else:
            writer.mkdir(name, 0o755)
    for device, number in _DEVICES.items():
        writer.mkchardev(device.encode(), number, 0o666)
    writer.write_trailer()
    return out.getvalue()


def _directory(files: Iterable[Path]) -> Sequence[Path]:
    """Everything the archive holds, a directory before what is in it."""
    found = {Path(name) for name in _DIRECTORIES}
    # Links at the top, such as /lib64, by which the loader itself may be named.
    found |= {path for path in Path("/").iterdir() if path.is_symlink()}
    for file in files:
        found |= _way_to(file)
    return sorted(found)


def _way_to(file: Path) -> set[Path]:
    """A file, and the directories and links on the way to it."""
    found: set[Path] = set()
    for _ in range(_MOST_LINKS):
        parents = [*reversed(file.parents), file]
        found |= set(parents[1:])
        link = next((path for path in parents if path.is_symlink()), None)
        if link is None:
            return found
        # What is behind the link is not in it but where it points to.
        found -= {path for path in parents if path != link and path.is_relative_to(link)}
        target = link.parent / link.readlink()
        file = Path(os.path.normpath(target / file.relative_to(link)))
    raise NoArchive(f"too many links on the way to {file}", hint="look at them with namei -l")
