"""Saved states of booted machines, so that the next one need not boot.

Below the directory of a `Snapshots`: `<key>/` with the state, a record and the console of the boot,
which appears by one rename and is removed by one; `<key>.lock`, held by whoever makes it, and
removed some time after the state.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from vm.qemu.command_line import MachineSpec, find_qemu, port_names, qemu_argv

SCHEMA = 3
STATE = "state"
RECORD = "record.json"
CONSOLE = "console.log"
#: A state is some 60 MB; kernels are tried, changed and forgotten.
LIMIT_BYTES = 1 << 30
_CPUS = Path("/proc/cpuinfo")
_CHUNK = 1 << 20
#: A file that was changed a moment ago can be changed again without another time, nanoseconds.
_MOMENT = 1_000_000_000
#: Files that were looked through by this process, or by one that it was forked from: what they
#: were then, and the digests of their content.
_digests: dict[tuple[int, ...], str] = {}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One saved state.

    `size` is in bytes, `sha256` of the state's file; `info` is what the guest knew of itself,
    `roll` its actors, and `opening` what it had answered (MachineSpec).
    """

    directory: Path
    size: int
    sha256: str
    info: dict[str, Any]
    roll: list[list[Any]]
    opening: list[list[dict[str, Any]]]

    @property
    def state(self) -> Path:
        """The file that QEMU reads."""
        return self.directory / STATE

    def boot_console(self) -> str:
        """What the kernel said before it was saved."""
        try:
            return (self.directory / CONSOLE).read_text(errors="replace")
        except OSError:
            return ""

    def intact(self, descriptor: int) -> bool:
        """Whether the state, opened as `descriptor`, is as it was saved."""
        return _digest_of(descriptor) == self.sha256


class Snapshots:
    """The saved states below one directory.  Reading takes no lock."""

    def __init__(self, directory: Path, limit: int = LIMIT_BYTES) -> None:
        self._directory = directory
        self._limit = limit

    def find(self, key: str) -> Snapshot | None:
        """The state of a key if there is one that looks whole.  Marks it as used."""
        directory = self._directory / key
        try:
            record = json.loads((directory / RECORD).read_text())
            found = Snapshot(
                directory,
                int(record["size"]),
                str(record["sha256"]),
                dict(record["info"]),
                list(record["roll"]),
                list(record["opening"]),
            )
            # Of a directory that was copied or renamed the key is another one's.
            ours = (record["schema"], record["key"]) == (SCHEMA, key)
            whole = ours and found.state.stat().st_size == found.size
        except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
            return None
        with suppress(OSError):
            os.utime(directory)
        return found if whole else None

    def verify(self, key: str) -> None:
        """Find out whether the state of a key, if there is one, is intact: it is known then."""
        if (found := self.find(key)) is not None:
            with found.state.open("rb") as state:
                found.intact(state.fileno())

    @contextmanager
    def making(self, key: str) -> Iterator[Path | None]:
        """A scratch directory for the one who makes the state of a key; None for all others.

        Raises OSError where nothing can be written.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._lock(key), blocking=False)
        try:
            lock.acquire()
        except Timeout:
            yield None
            return
        scratch: Path | None = None
        try:
            self._sweep(key)
            if self.find(key) is None:
                scratch = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=self._directory))
            yield scratch
        finally:
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
            lock.release()

    def publish(self, key: str, scratch: Path, known: dict[str, Any]) -> None:
        """Let a state, written into the scratch directory, appear.  Call while `making` it.

        ``known`` has a Snapshot's info, roll and opening.
        """
        state = scratch / STATE
        record = {
            "schema": SCHEMA,
            "key": key,
            "size": state.stat().st_size,
            "sha256": _sha256(state),
            **known,
        }
        (scratch / RECORD).write_text(json.dumps(record))
        self.discard(key)
        scratch.rename(self._directory / key)
        self._make_room(key)

    def discard(self, key: str) -> None:
        """Remove a state that proved useless; whoever has it open goes on."""
        with suppress(OSError):
            grave = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=self._directory))
            with suppress(OSError):
                (self._directory / key).rename(grave / key)
            shutil.rmtree(grave, ignore_errors=True)

    def tidy(self) -> None:
        """Remove what makers left behind that were killed, whatever they made."""
        for key in {left.name.partition(".")[0] for left in self._directory.glob("*.*/")}:
            with suppress(Timeout, OSError), FileLock(self._lock(key), blocking=False):
                self._sweep(key)
        self._remove_locks()

    def _lock(self, key: str) -> Path:
        return self._directory / f"{key}.lock"

    def _sweep(self, key: str) -> None:
        """Remove what makers of this key left behind that were killed; we hold its lock."""
        for left in self._directory.glob(f"{key}.*"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)

    def _make_room(self, key: str) -> None:
        """Remove the states that were not used for longest until the rest fits."""
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
        """Remove the locks of states that are gone, but for those that somebody holds."""
        for path in self._directory.glob("*.lock"):
            if not (self._directory / path.stem).is_dir():
                # Who opened it before it went finds that it has no name, and opens another.
                with suppress(Timeout, OSError), FileLock(path, blocking=False):
                    path.unlink()


def snapshot_key(spec: MachineSpec) -> str:
    """A digest of all that a saved state depends on: same key, same machine.

    Kernel, root, opening, QEMU, and its whole command line, which has accelerator, processor and
    memory; the host's processor too where the guest sees it.  Raises OSError, HostTrouble.
    """
    digest = hashlib.sha256(f"{SCHEMA}".encode())
    numbers = range(len(port_names(spec)) + 1)
    for word in qemu_argv(spec, console=Path("console"), channels=numbers[1:], monitor=0):
        digest.update(f"{word}\0".encode())
    digest.update(json.dumps(spec.opening).encode())
    for file in (spec.kernel, spec.root):
        digest.update(_sha256(file).encode() if file else b"-")
    qemu = Path(find_qemu(spec.qemu)).resolve()
    status = qemu.stat()
    digest.update(f"{qemu} {status.st_size} {status.st_mtime_ns}".encode())
    if spec.accelerator.name != "tcg":
        digest.update("\n".join(_processor()).encode())
    return digest.hexdigest()[:32]


def _processor() -> list[str]:
    """What of the host's first processor does not change while it runs."""
    lines = _CPUS.read_text().partition("\n\n")[0].splitlines()
    return [line for line in lines if not line.startswith(("cpu MHz", "bogomips"))]


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return _digest_of(opened.fileno())


def _digest_of(descriptor: int) -> str:
    """The SHA-256 of an open file; of one that did not change since it is remembered."""
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
        if max(times) < began - _MOMENT:
            _digests[file] = known
    return known
