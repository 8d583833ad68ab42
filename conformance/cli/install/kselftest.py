"""A kselftest installation with the collection: a directory, or a tarball of one."""

from __future__ import annotations

import lzma
import os
import shutil
import tarfile
from pathlib import Path

from conformance.cli.install.interpreter import FILES
from conformance.cli.install.tree import COLLECTION, write_collection
from host.files import write_atomically
from host.temporary_directories import scratch

_LIST, _RUNNER = "kselftest-list.txt", "run_kselftest.sh"
_ENTRY = f"{COLLECTION}:run.sh"
#: Seconds since 1970 of every file, as reproducible-builds.org asks for; else 2000-01-01.
_EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "946684800"))
#: Of xz: a larger one needs more memory to unpack, and gains one percent.
_PRESET = 6


def install(directory: Path) -> None:
    """Add the collection to a directory, which may hold other collections.

    Raises HostTrouble, OSError.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with scratch(directory) as work:
        new = work / COLLECTION
        write_collection(new)
        old = directory / COLLECTION
        if old.exists():
            old.rename(work / "old")
        new.rename(old)
    listed = directory / _LIST
    entries = listed.read_text().splitlines() if listed.exists() else []
    if _ENTRY not in entries:
        write_atomically(listed, "".join(f"{each}\n" for each in [*entries, _ENTRY]))
    listed.chmod(0o644)
    if not (directory / _RUNNER).exists():
        shutil.copyfile(FILES / _RUNNER, directory / _RUNNER)
        (directory / _RUNNER).chmod(0o755)


def write_tarball(file: Path, preset: int = _PRESET) -> None:
    """Write the installation as a .tar.xz whose bytes depend on its content only.

    Raises HostTrouble, OSError.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with scratch(file.parent) as work:
        tree = work / "tree"
        install(tree)
        packed = work / file.name
        with (
            lzma.open(packed, "wb", preset=preset) as stream,
            tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive,
        ):
            for path in sorted(tree.rglob("*")):
                archive.add(path, str(path.relative_to(tree)), recursive=False, filter=_plain)
        packed.replace(file)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = _EPOCH
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
