"""Storage of snapshots: states of booted guests.

`<key>/` holds the state, a record and the console of the boot; it is created and removed by one
rename.  The process that saves a snapshot holds `<key>.lock`, which is removed after the snapshot.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from msgspec import Struct
from msgspec.structs import replace

from host import temporary_directories
from vm.qemu.accelerator import TCG
from vm.qemu.command_line import MachineSpec, find_qemu, port_names, qemu_argv

SCHEMA = 4
STATE = "state"
RECORD = "record.json"
CONSOLE = "console.log"
#: Maximum total size.  A state has about 60 MB.
LIMIT_BYTES = 1 << 30
_CPUS = Path("/proc/cpuinfo")
_CHUNK = 1 << 20
#: A file modified less than this ago may be modified again without a new mtime, nanoseconds.
_MTIME_RESOLUTION = 1_000_000_000
#: Digests of files by identity, size and times.  Forked workers inherit them.
_digests: dict[tuple[int, ...], str] = {}


class Snapshot(Struct, frozen=True):
    """One snapshot.

    `size` in bytes and `sha256` describe the state file.  `info` and `actors` are those of the
    guest, `opening` has the results of the opening requests (MachineSpec).
    """

    directory: Path
    size: int
    sha256: str
    info: dict[str, Any]
    actors: list[list[Any]]
    opening: list[list[dict[str, Any]]]

    @property
    def state(self) -> Path:
        """The file that QEMU reads."""
        return self.directory / STATE

    def boot_console(self) -> str:
        """The console output before the snapshot."""
        try:
            return (self.directory / CONSOLE).read_text(errors="replace")
        except OSError:
            return ""

    def intact(self, descriptor: int) -> bool:
        """Whether the open state file has the recorded digest."""
        return _digest_of(descriptor) == self.sha256


class Snapshots:
    """The snapshots below one directory.  Reading takes no lock."""

    def __init__(self, directory: Path, limit: int = LIMIT_BYTES) -> None:
        self._directory = directory
        self._limit = limit

    def find(self, key: str) -> Snapshot | None:
        """The snapshot of a key if there is a complete one.  Marks it as used."""
        directory = self._directory / key
        try:
            record = json.loads((directory / RECORD).read_text())
            found = Snapshot(
                directory,
                int(record["size"]),
                str(record["sha256"]),
                dict(record["info"]),
                list(record["actors"]),
                list(record["opening"]),
            )
            # The key differs in a directory that was copied or renamed.
            matches = (record["schema"], record["key"]) == (SCHEMA, key)
            complete = matches and found.state.stat().st_size == found.size
        except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
            return None
        with suppress(OSError):
            os.utime(directory)
        return found if complete else None

    def verify(self, key: str) -> None:
        """Compute the digest of a snapshot ahead of its use."""
        if (found := self.find(key)) is not None:
            with found.state.open("rb") as state:
                found.intact(state.fileno())

    @contextmanager
    def claimed(self, key: str) -> Iterator[Path | None]:
        """A scratch directory for a new snapshot; None if it exists or another process saves it.

        Raises OSError if the directory is not writable.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            scratch: Path | None = None
            with suppress(Timeout):
                held.enter_context(FileLock(self._directory / f"{key}.lock", blocking=False))
                if self.find(key) is None:
                    directory = temporary_directories.scratch(self._directory)
                    scratch = held.enter_context(directory)
            yield scratch

    def publish(self, key: str, scratch: Path, content: dict[str, Any]) -> None:
        """Move a finished snapshot from its `claimed` scratch directory into place.

        `content` has info, actors and opening of the Snapshot.
        """
        state = scratch / STATE
        record = {
            "schema": SCHEMA,
            "key": key,
            "size": state.stat().st_size,
            "sha256": _sha256(state),
            **content,
        }
        (scratch / RECORD).write_text(json.dumps(record))
        self.discard(key)
        scratch.rename(self._directory / key)
        self._make_room(key)

    def discard(self, key: str) -> None:
        """Remove a snapshot; processes that have it open are not affected."""
        with suppress(OSError), temporary_directories.scratch(self._directory) as trash:
            (self._directory / key).rename(trash / key)

    def clean_up(self) -> None:
        """Remove scratch directories of killed processes, and unused locks."""
        temporary_directories.sweep(self._directory)
        self._remove_locks()

    def _make_room(self, key: str) -> None:
        """Remove the least recently used snapshots until the rest fits into the limit."""
        used = []
        for record in self._directory.glob(f"*/{RECORD}"):
            with suppress(OSError):
                directory = record.parent
                size = (directory / STATE).stat().st_size
                used.append((directory.stat().st_mtime, directory.name, size))
        total = sum(size for _, _, size in used)
        for _, name, size in sorted(used):
            if total > self._limit and name != key:
                self.discard(name)
                total -= size
        self._remove_locks()

    def _remove_locks(self) -> None:
        """Remove locks that are not held and whose snapshots are gone."""
        for path in self._directory.glob("*.lock"):
            if not (self._directory / path.stem).is_dir():
                # FileLock detects an unlinked lock and opens a new one.
                with suppress(Timeout, OSError), FileLock(path, blocking=False):
                    path.unlink()


def snapshot_key(spec: MachineSpec) -> str:
    """A digest of all that a snapshot depends on.

    These are the kernel, root, opening requests, QEMU with its command line, and the processor of
    the host if the guest uses it.  Raises OSError, HostTrouble.
    """
    digest = hashlib.sha256(f"{SCHEMA}".encode())
    numbers = range(len(port_names(spec)) + spec.streams + 1)
    # What the guest mounts later, and who debugs it, does not change its state.
    exports = tuple(replace(export, path=Path(export.tag)) for export in spec.exports)
    plain = replace(spec, exports=exports, gdb=None)
    for word in qemu_argv(plain, console=Path("console"), channels=numbers[1:], monitor=0):
        digest.update(os.fsencode(f"{word}\0"))
    digest.update(json.dumps(spec.opening).encode())
    for file in (spec.kernel, spec.root):
        digest.update(_sha256(file).encode() if file else b"-")
    qemu = Path(find_qemu(spec.qemu)).resolve()
    status = qemu.stat()
    digest.update(f"{qemu} {status.st_size} {status.st_mtime_ns}".encode())
    if spec.accelerator.name != TCG.name:
        digest.update("\n".join(_processor()).encode())
    return digest.hexdigest()[:32]


def _processor() -> list[str]:
    """The constant properties of the host's first processor."""
    lines = _CPUS.read_text().partition("\n\n")[0].splitlines()
    return [line for line in lines if not line.startswith(("cpu MHz", "bogomips"))]


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return _digest_of(opened.fileno())


def _digest_of(descriptor: int) -> str:
    """The SHA-256 of an open file, cached until the file changes."""
    status = os.fstat(descriptor)
    times = status.st_mtime_ns, status.st_ctime_ns
    file = (status.st_dev, status.st_ino, status.st_size, *times)
    known = _digests.get(file)
    if known is None:
        began = time.time_ns()
        digest, offset = hashlib.sha256(), 0
        while chunk := os.pread(descriptor, _CHUNK, offset):
            digest.update(chunk)
            offset += len(chunk)
        known = digest.hexdigest()
        if max(times) < began - _MTIME_RESOLUTION:
            _digests[file] = known
    return known
